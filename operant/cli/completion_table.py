"""What completion needs to know of specs, settings and topics, kept as JSON in the user's cache.

Building it loads every settings class (most of a second). It is built at the first press of TAB after an install or a
change of the package, and read after that.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from operant import __version__

PACKAGE = Path(__file__).resolve().parents[1]
CHOICE = re.compile(r"\b(?:name|type)[\"']?\s*[:=]\s*[\"']?([\w.-]+)")


class SettingEntry(TypedDict):
    """A setting: where it is, the choices that bring it, and its values where they can be listed."""

    path: str
    chosen: dict[str, str]
    about: str
    values: list[str]
    section: bool


@cache
def table() -> dict[str, Any]:
    """The table, from the cache where it is of this very package."""
    return cached("settings", _built)


def cached(name: str, build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `build` gives, from the cache where it is of this very package."""
    file, key = _file(name), _key()
    with suppress(OSError, ValueError):
        kept = json.loads(file.read_bytes())
        if kept["key"] == key:
            return kept
    built = {"key": key, **build()}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(built), encoding="utf-8")
        partial.replace(file)
    return built


def spec_choices(text: str) -> set[str]:
    """The words that a spec's text gives as a `name` or a `type`: the algorithm, net, memory and so on."""
    return set(CHOICE.findall(text))


def _file(name: str) -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = re.sub(r"\W+", "-", str(PACKAGE)).strip("-")
    return home / "operant" / "completion" / f"{place[-80:]}-{name}.json"


def _key() -> list[Any]:
    """Changes with the package's own files and with what is installed beside it."""
    folders = [PACKAGE, PACKAGE / "cli", PACKAGE / "specs", *(PACKAGE / "spec").glob("**/")]
    own = [entry.stat().st_mtime_ns for folder in folders for entry in os.scandir(folder) if entry.is_file()]
    installed = [
        Path(each).stat().st_mtime_ns for each in sys.path if each.endswith("-packages") and Path(each).is_dir()
    ]
    return [__version__, len(own), max(own), sum(installed)]


def _built() -> dict[str, Any]:
    from operant.spec.catalog import settings
    from operant.spec.describe import topics

    found = list(settings())
    places = {setting.path: list(setting.type.one_of.registry) for setting in found if setting.type.one_of is not None}
    tags = {setting.path: setting.type.one_of.tag for setting in found if setting.type.one_of is not None}
    entries: list[SettingEntry] = []
    for setting in found:
        parent, _, name = setting.path.rpartition(".")
        # The setting that chooses is there whatever is chosen, with a value of each class.
        is_tag = tags.get(parent) == name
        chosen = {at: each for at, each in setting.chosen.items() if not (is_tag and at == parent)}
        entry: SettingEntry = {
            "path": setting.path,
            "chosen": chosen,
            "about": setting.field.description or "",
            "values": [value for value in _words(setting.values) if value not in ("", "required")],
            "section": setting.type.words == "section",
        }
        if entry not in entries[-200:]:
            entries.append(entry)
    return {
        "specs": _specs(),
        "settings": entries,
        "choices": places,
        "topics": [list(each) for each in topics()],
    }


def _words(values: Iterable[str]) -> list[str]:
    """Those values that are one word to a shell; YAML needs no space in a list."""
    return [word for value in values if " " not in (word := value.replace(", ", ","))]


def _specs() -> dict[str, Any]:
    """Each built-in spec with the choices that its own text makes."""
    from operant.spec.builtin import builtin_names

    entries = {}
    for name, about, file in builtin_names():
        text = (PACKAGE / "specs" / file).read_text(encoding="utf-8")
        own = re.search(rf"^{re.escape(name)}:.*?(?=^[A-Za-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
        entries[name] = {"about": about, "words": sorted(spec_choices(own[0] if own else text))}
    return entries
