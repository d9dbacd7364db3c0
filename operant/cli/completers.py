"""What the shell offers for an argument: specs, runs, settings and their values, topics of help.

Each function takes the words of the command so far and the one being typed, and returns values with a line about each.
It answers from the completion table, without loading the settings' classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from operant.cli.completion_table import SettingEntry, spec_choices, table

DEFAULT_ROOT = "runs"
SPEC_FILES = ("yaml", "yml", "json", "toml")
Offer = tuple[str, str]


def complete_spec(args: list[str], incomplete: str) -> list[Offer]:
    """Names of built-in specs, and spec files nearby."""
    files = [(str(path), "") for suffix in SPEC_FILES for path in Path().glob(f"*.{suffix}")]
    built_in = [(name, entry["about"]) for name, entry in table()["specs"].items()]
    return [offer for offer in [*built_in, *files] if offer[0].startswith(incomplete)]


def complete_suite(args: list[str], incomplete: str) -> list[Offer]:
    """Names of built-in benchmark suites, and files nearby."""
    folder = Path(__file__).resolve().parents[1] / "benchmark" / "suites"
    built_in = [(path.stem, _description(path)) for path in sorted(folder.glob("*.yaml"))]
    files = [(str(path), "") for suffix in SPEC_FILES for path in Path().glob(f"*.{suffix}")]
    return [offer for offer in [*built_in, *files] if offer[0].startswith(incomplete)]


def _description(suite: Path) -> str:
    found = re.search(r"^description:\s*(.*)$", suite.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def complete_run(args: list[str], incomplete: str) -> list[Offer]:
    """`latest`, spec names and name/stamp pairs under the default root."""
    root = Path(DEFAULT_ROOT)
    found = ["latest", *(path.relative_to(root).as_posix() for depth in ("*", "*/*") for path in root.glob(depth))]
    return sorted((name, "") for name in found if name.startswith(incomplete))


def complete_tracker(args: list[str], incomplete: str) -> list[Offer]:
    """Names of trackers."""
    known = [(words.split()[1], about) for words, about in table()["topics"] if words.startswith("tracker ")]
    return [offer for offer in known if offer[0].startswith(incomplete)]


def complete_topic(args: list[str], incomplete: str) -> list[Offer]:
    """The next word of a topic of `operant help`; for the first also, once begun, names of settings."""
    known = table()
    typed = [word for word in args if not word.startswith("-")]
    offers = {}
    for words, about in known["topics"]:
        parts = words.split()
        if parts[: len(typed)] == typed and len(parts) > len(typed):
            offers.setdefault(parts[len(typed)], about if len(parts) == len(typed) + 1 else "")
    if incomplete and not typed:
        offers |= _setting_words(known["settings"], incomplete)
    return sorted((word, about) for word, about in offers.items() if word.startswith(incomplete))


def _setting_words(entries: list[SettingEntry], incomplete: str) -> dict[str, str]:
    """Names of settings, or whole paths once a dot is typed."""
    plain = [entry for entry in entries if "[]" not in entry["path"]]
    dotted = "." in incomplete
    return {entry["path"] if dotted else entry["path"].rpartition(".")[2]: entry["about"] for entry in plain}


def complete_setting(args: list[str], incomplete: str) -> list[Offer]:
    """Paths of the settings that the spec of the command line has; behind the `=`, the values of one.

    One path that is left alone comes with its values, so that the shell does not put a space behind it.
    """
    key, equals, typed = incomplete.partition("=")
    fitting = list(_fitting(args, key))
    if equals:
        same = [entry for entry in fitting if entry["path"] == key]
        return [(f"{key}={value}", same[0]["about"]) for value in _values(same) if value.startswith(typed)]
    paths = {entry["path"]: entry["about"] for entry in fitting if not entry["section"]}
    if len(paths) != 1:
        return [(f"{path}=", about) for path, about in paths.items()]
    [(path, about)] = paths.items()
    values = _values([entry for entry in fitting if entry["path"] == path])
    return [(f"{path}={value}", about) for value in (values if len(values) > 1 else ["", *values])]


def _fitting(args: list[str], key: str) -> Iterator[SettingEntry]:
    chosen = _chosen(args)
    for entry in table()["settings"]:
        if entry["path"].startswith(key) and "[]" not in entry["path"]:
            wanted = ((at, name, chosen.get(at)) for at, name in entry["chosen"].items())
            if all(names is None or name in names for _, name, names in wanted):
                yield entry


def _chosen(args: list[str]) -> dict[str, set[str]]:
    """What the spec and the overrides on the command line choose at each place that offers a choice."""
    known = table()
    target = next((word for before, word in zip(["", *args], args, strict=False) if not _is_value(before, word)), None)
    if target in known["specs"]:
        words = set(known["specs"][target]["words"])
    else:
        path = Path((target or "").rpartition(":")[0] or target or "")
        words = spec_choices(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else set()
    chosen = {}
    for at, names in known["choices"].items():
        found = words & set(names)
        given = [word.partition("=")[2] for word in args if re.match(rf"{re.escape(at)}\.(name|type)=", word)]
        if given or found:
            chosen[at] = set(given[-1:]) or found
    return chosen


def _is_value(before: str, word: str) -> bool:
    """Whether a word is an option or stands behind one, and so is no spec."""
    return word.startswith("-") or before.startswith("-")


def _values(entries: list[SettingEntry]) -> list[str]:
    return list(dict.fromkeys(value for entry in entries for value in entry["values"]))
