"""Counts what becomes of another lab's own files, as they are: which load, which need --lossy, and why others do not.

python -m benchmarks.foreign_files slm-lab FOLDER [--json FILE]

FOLDER is a checkout of slm-lab, rlvr, prime-rl, mlgym or hackmatrix. Placeholders of SLM-Lab's files are filled as its
own documentation fills them; a file that lacks its budget is given it by the one flag that the error names.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from operant.errors import OperantError
from operant.spec.dialects.hackmatrix import read_flags
from operant.spec.load import documents_of, load

BUDGET = 10_000_000
FLAG = re.compile(r"-s (?P<key>[\w.]+)=VALUE")
PLACE = re.compile(r"^\s*(\d+ )?\||^\s*try:")


@dataclass(frozen=True)
class Outcome:
    """One named spec: its class, the flags it was given, and the first reason where it is refused."""

    file: str
    name: str
    kind: str
    flags: list[str]
    reason: str = ""


def environment(file: Path) -> str:
    """What `${env}` is for a file, by the suite in its path."""
    if "playground" in str(file):
        return "playground/CartpoleBalance"
    return "ALE/Pong-v5" if "atari" in str(file) else "HalfCheetah-v5"


def try_spec(file: Path, name: str, base: Path) -> Outcome:
    """Load one spec as it is, with its placeholders filled, and its budget where only that is missing."""
    flags = [f"env={environment(file)}"] if "${env}" in file.read_text() else []
    flags += [f"max_frame={BUDGET}"] if "${max_frame}" in file.read_text() else []
    told = _refusal(file, name, flags, lossy=False)
    asked = FLAG.search(told)
    if asked is not None and asked["key"] == "env.max_frame":
        flags = [*flags, f"{asked['key']}={BUDGET}"]
        told = _refusal(file, name, flags, lossy=False)
    kind = "loads" if not told else "refused" if _refusal(file, name, flags, lossy=True) else "loads with --lossy"
    return Outcome(str(file.relative_to(base)), name, kind, flags, reason(told))


def _refusal(file: Path, name: str, flags: Sequence[str], lossy: bool) -> str:
    given = [flag for flag in flags if flag.partition("=")[0] not in ("env", "max_frame") or _waits(file, name, flag)]
    try:
        load(str(file), name, given, lossy)
    except OperantError as refused:
        return str(refused) or type(refused).__name__
    return ""


def _waits(file: Path, name: str, flag: str) -> bool:
    """Whether this spec of the file has the placeholder."""
    return f"${{{flag.partition('=')[0]}}}" in json.dumps(documents_of(file)[name].data)


def reason(told: str) -> str:
    """The first cause of a refusal without places and values, so that equal ones can be counted."""
    lines = [line for line in told.splitlines() if not PLACE.match(line)]
    return re.sub(r"^\S+:\d+:\d+: ", "", lines[0]) if lines else ""


def spec_files(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """All files of a folder that a program would take for specs."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in suffixes and not file.name.startswith("_"):
            yield file


def slm_lab(folder: Path) -> Iterator[Outcome]:
    """Every named spec under slm_lab/spec."""
    for file in spec_files(folder / "slm_lab" / "spec", (".json", ".yaml", ".yml")):
        for name in documents_of(file):
            yield try_spec(file, name, folder)


def rlvr(folder: Path) -> Iterator[Outcome]:
    """Every file that has `roles`, and those that evaluate."""
    for file in spec_files(folder, (".yaml", ".yml")):
        for name in _names(file, "roles:"):
            yield try_spec(file, name, folder)


def prime_rl(folder: Path) -> Iterator[Outcome]:
    """Every TOML file of the configs."""
    for file in spec_files(folder / "configs", (".toml",)):
        names = _names(file, "")
        yield try_spec(file, names[0] if len(names) == 1 else file.stem, folder)


def _names(file: Path, sign: str) -> list[str]:
    if sign not in file.read_text():
        return []
    try:
        return list(documents_of(file))
    except OperantError:
        return [file.stem]


def mlgym(folder: Path) -> Iterator[Outcome]:
    """Every task: whether it imports."""
    from operant.envs.research.mlgym.task import load_imported

    for file in spec_files(folder / "configs" / "tasks", (".yaml",)):
        try:
            load_imported(str(file))
        except OperantError as refused:
            yield Outcome(file.name, file.stem, "refused", [], reason(str(refused)))
        else:
            yield Outcome(file.name, file.stem, "loads", [])


def hackmatrix(folder: Path) -> Iterator[Outcome]:
    """Every flag of the trainer, each alone, with a value that it takes."""
    script, spec = folder / "python" / "scripts" / "train_purejaxrl.py", load("ppo_hackmatrix").spec
    for call in ast.walk(ast.parse(script.read_text())):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        flag = call.args[0]
        if call.func.attr != "add_argument" or not isinstance(flag, ast.Constant):
            continue
        said = {each.arg: ast.unparse(each.value) for each in call.keywords}
        value = "" if "action" in said else "x" if said.get("type", "str") == "str" else "8"
        try:
            found = read_flags(f"{flag.value} {value}".strip(), spec)
        except OperantError as refused:
            yield Outcome(script.name, str(flag.value), "refused", [], str(refused))
        else:
            yield Outcome(script.name, str(flag.value), "told" if found.remarks else "loads", found.overrides)


LABS = {"slm-lab": slm_lab, "rlvr": rlvr, "prime-rl": prime_rl, "mlgym": mlgym, "hackmatrix": hackmatrix}


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Counts by class, and the reasons of those that do not load, most frequent first."""
    kinds = Counter(each.kind for each in outcomes)
    files = len({each.file for each in outcomes})
    lines = [f"{len(outcomes)} in {files} files", *(f"{count:>5}  {kind}" for kind, count in kinds.most_common())]
    reasons = Counter(each.reason for each in outcomes if each.reason)
    return [*lines, *(f"{count:>9}  {reason[:150]}" for reason, count in reasons.most_common())]


def main() -> None:
    """Count, print, and keep each spec's outcome where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab", choices=LABS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, dest="out")
    asked = parser.parse_args()
    outcomes = list(LABS[asked.lab](asked.folder))
    print(*summary(outcomes), sep="\n")
    if asked.out is not None:
        asked.out.write_text(json.dumps([asdict(each) for each in outcomes], indent=2))


if __name__ == "__main__":
    main()
