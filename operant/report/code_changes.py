"""In which files, and where their texts are still to be had in which lines, the code of two runs differs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.report.origin import Origin
from operant.run.source import PACKAGE, recorded_text

MOST_LINES = 12
GONE = "not there"
# Code that reads runs, copies them or talks to people: it trains nothing.
NOT_TRAINING = tuple(
    f"{room}/" for room in ("api", "app", "cli", "contract", "hpo", "report", "store", "trackers", "web")
)


@dataclass(frozen=True)
class CodeDifference:
    """A file, or a repository, that was another one.

    `acts` is False where it cannot change what is learnt: a commit under which no file differs, a file of the reports.
    """

    name: str
    a: str
    b: str
    lines: tuple[str, ...] = ()
    acts: bool = True


def code_differences(a: Origin, b: Origin) -> list[CodeDifference]:
    """Files of Operant and modules of the user that differ, and the commits."""
    files = [*_operant_files(a, b), *_own_modules(a, b)]
    return [*files, *_commits(a, b, acts=not (a.source and b.source))]


def changed_lines(before: str, after: str) -> tuple[str, ...]:
    """The lines that two texts do not share, each with its number: `41 - old`, `41 + new`."""
    found: list[str] = []
    old, new = before.splitlines(), after.splitlines()
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            found += [f"{i + 1} - {old[i].strip()}" for i in range(i1, i2)]
            found += [f"{j + 1} + {new[j].strip()}" for j in range(j1, j2)]
    more = len(found) - MOST_LINES
    return tuple([*found[:MOST_LINES], f"and {more} lines more"] if more > 0 else found)


def _operant_files(a: Origin, b: Origin) -> Iterator[CodeDifference]:
    one, other = a.source, b.source
    if not one or not other:
        return
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            texts = [recorded_text(each.source, _shas(each), each.patch, name) for each in (a, b)]
            known = texts[0] is not None and texts[1] is not None
            lines = changed_lines(texts[0] or "", texts[1] or "") if known else ()
            digests = _short(one.get(name)), _short(other.get(name))
            yield CodeDifference(f"{PACKAGE.name}/{name}", *digests, lines, acts=not name.startswith(NOT_TRAINING))


def _own_modules(a: Origin, b: Origin) -> Iterator[CodeDifference]:
    """Algorithms, networks, environments of the user that both used and that were not the same file."""
    before = {part["module"]: part for part in a.parts}
    for part in b.parts:
        old = before.get(part["module"])
        if old is not None and old["sha256"] != part["sha256"]:
            yield CodeDifference(Path(part["file"]).name, _short(old["sha256"]), _short(part["sha256"]))


def _commits(a: Origin, b: Origin, acts: bool) -> Iterator[CodeDifference]:
    one, other = _repositories(a), _repositories(b)
    for name in dict.fromkeys([*one, *other]):
        before, after = _state(one.get(name)), _state(other.get(name))
        if before != after or (one.get(name, {}).get("dirty") and _patch(a) != _patch(b)):
            yield CodeDifference(f"commit ({name})", before, after, acts=acts)


def _shas(origin: Origin) -> list[str]:
    return [str(each["sha"]) for each in _repositories(origin).values() if each.get("sha")]


def _repositories(origin: Origin) -> dict[str, Mapping[str, Any]]:
    return {each["of"]: each for each in origin.provenance.get("git") or () if isinstance(each, Mapping)}


def _state(repository: Mapping[str, Any] | None) -> str:
    if repository is None:
        return GONE
    commit = str(repository.get("sha") or "no commit")[:7]
    return f"{commit} with uncommitted changes" if repository.get("dirty") else commit


def _patch(origin: Origin) -> bytes:
    try:
        return origin.patch.read_bytes() if origin.patch else b""
    except OSError:
        return b""


def _short(digest: str | None) -> str:
    return GONE if digest is None else digest[:8]
