"""What becomes of every setting of another lab's file: the same, another with a remark, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from operant.spec.dialects.conversion import Conversion
from operant.spec.errors import dotted, key_span
from operant.spec.reading.document import KeyPath, lookup

Verdict = Literal["same", "remarked", "refused"]
UNREAD = "not looked at, because of what else is refused"
UNKNOWN = "not in this lab's table"


@dataclass(frozen=True)
class Explained:
    """One setting: where it stands and what it says, what it means there, and what it is here.

    `means` is empty where that depends on something that is refused; `ours` are the settings of ours that come from it;
    `why` says what differs, or what stops it.
    """

    place: str
    value: Any
    means: str
    ours: dict[str, Any]
    verdict: Verdict
    why: str
    line: int | None


def explain(conversion: Conversion) -> list[Explained]:
    """Every setting of the file in its order, and then those that it lacks."""
    given = [path for path, _ in _settings(conversion, conversion.theirs.data, ())]
    lacking = [path for path, _ in conversion.problem_paths if not any(_touch(path, each) for each in given)]
    return [_explained(conversion, path) for path in [*given, *dict.fromkeys(lacking)]]


def _settings(conversion: Conversion, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Single settings: scalars, lists of them, and sections that one row of the table speaks of."""
    table, kind = conversion.table, conversion.kind
    if path and table.is_single(path, kind):
        yield path, value
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _settings(conversion, each, (*path, key))
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for index, each in enumerate(value):
            yield from _settings(conversion, each, (*path, index))
    elif path:
        yield path, value


def _explained(conversion: Conversion, path: KeyPath) -> Explained:
    row, at = conversion.row_at(path), key_span(path, conversion.theirs)
    value = lookup(conversion.theirs.data, path)
    problems = [why for place, why in conversion.problem_paths if _touch(place, path)]
    remarks = [each.text for each in conversion.remarks if _touch(tuple(each.key.split(".")), tuple(map(str, path)))]
    ours = {
        dotted(native): lookup(conversion.native.data, native)
        for native, origin in conversion.origins.items()
        if origin[: len(path)] == path
    }
    if not problems and not remarks and value is not None and not _is_read(conversion, path):
        problems = [UNREAD]
    verdict: Verdict = "refused" if problems else "remarked" if remarks else "same"
    said = "; ".join(dict.fromkeys([*problems, *remarks]))
    means = row.means if row else "" if problems == [UNREAD] else UNKNOWN
    return Explained(dotted(path), value, means, ours, verdict, said, at.line if at else None)


def _is_read(conversion: Conversion, path: KeyPath) -> bool:
    """Whether the setting was asked for, by itself or with a section that was taken as a whole."""
    known = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in conversion.read_paths), None)
    inside = (each for each in conversion.read_paths if known and len(each) > len(known))
    return known is not None and (known == path or not any(each[: len(known)] == known for each in inside))


def _touch(one: KeyPath, other: KeyPath) -> bool:
    """Whether two paths are the same, or one lies inside the other."""
    length = min(len(one), len(other))
    return length > 0 and one[:length] == other[:length]
