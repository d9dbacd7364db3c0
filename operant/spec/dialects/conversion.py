"""A conversion of another lab's spec under way: what was read, what it became, what is said about it, what is lost.

Every native value remembers where the other lab's file gave it, so that a later error points there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from operant.spec.dialects.table import Row, Table
from operant.spec.errors import dotted, key_span, span_of
from operant.spec.reading.diagnostics import Diagnostic, did_you_mean, shown
from operant.spec.reading.document import Document, KeyPath, Span, lookup, put


@dataclass(frozen=True)
class Remark:
    """What became of a key of another lab's spec where the native spec does not simply say the same."""

    key: str
    text: str
    at: Span | None = None

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


@dataclass
class Conversion:
    """Collects the native document, its remarks and its problems.

    `losses` may be accepted with --lossy, and are then listed as `lost`; `refusals` never, for without
    the setting there is no spec.
    `homes` gives, for each path of theirs, the native path that holds the very same value, `origins` for each native
    path where it comes from; `lab` is whose spec it is, `table` its settings, `given` what `-s` says of ours.
    """

    theirs: Document
    lab: str
    table: Table
    given: Mapping[str, Any]
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)
    homes: dict[KeyPath, KeyPath] = field(default_factory=dict)
    read_paths: set[KeyPath] = field(default_factory=set)
    problem_paths: list[tuple[KeyPath, str]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    losses: list[Diagnostic] = field(default_factory=list)
    lost: list[Remark] = field(default_factory=list)
    refusals: list[Diagnostic] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kind = self.table.kind_of(self.theirs.data)
        self.native = Document(self.theirs.source, {}, {})

    def set(self, native: str | KeyPath, value: Any, origin: KeyPath) -> None:
        """Give the native setting a value that comes from `origin` in their spec."""
        path = tuple(native.split(".")) if isinstance(native, str) else native
        found = self.theirs.mark_of(origin)
        self.origins[path] = origin
        marks = {path: found[1]} if found else {}
        self.homes = {theirs: ours for theirs, ours in self.homes.items() if ours != path}
        if value == lookup(self.theirs.data, origin):
            self.homes[origin] = path
        if value == lookup(self.theirs.data, origin) and isinstance(value, dict | list):
            inside = {at[len(origin) :]: mark for at, mark in self.theirs.marks.items() if at[: len(origin)] == origin}
            marks |= {path + at: mark for at, mark in inside.items()}
        data = put(self.native.data, path, value)
        self.native = replace(self.native, data=data, marks={**self.native.marks, **marks})

    def remark(self, path: KeyPath, text: str) -> None:
        """Say what became of a key."""
        self.remarks.append(Remark(dotted(path), text, key_span(path, self.theirs)))

    def lose(self, path: KeyPath, why: str, hint: str = "") -> None:
        """Name a setting that changes results and has no counterpart; none where `-s` says what it is here."""
        if self._is_moot(path):
            return
        self.problem_paths.append((path, why))
        self.losses.append(self._problem(path, why, hint))
        self.lost.append(Remark(dotted(path), f"LOST: {self._said(path)} {why}".replace("  ", " "), self._at(path)))

    def refuse(self, path: KeyPath, why: str, hint: str = "") -> None:
        """Name what makes a conversion impossible; nothing where `-s` says what it is here."""
        if self._is_moot(path):
            return
        self.problem_paths.append((path, why))
        self.refusals.append(self._problem(path, why, hint))

    def row_at(self, path: KeyPath) -> Row | None:
        """What the lab's table says of a path."""
        return self.table.row_at(path, self.kind)

    def _is_moot(self, path: KeyPath) -> bool:
        """Whether an override says what the setting at `path` decides here."""
        row = self.row_at(path)
        said = next((ours for ours in (row.ours if row else ()) if self.is_given(ours)), None)
        if said is not None and lookup(self.theirs.data, path) is not None:
            self.remark(path, f"left out: -s says {said}")
        return said is not None

    def their(self, place: str) -> Any:
        """What the file says at a dotted place; None where it says nothing."""
        return lookup(self.theirs.data, tuple(place.split(".")))

    def is_given(self, ours: str) -> bool:
        """Whether `-s` says this setting of ours, a part of it, or the section that holds it."""
        return any(f"{key}.".startswith(f"{ours}.") or f"{ours}.".startswith(f"{key}.") for key in self.given)

    def _problem(self, path: KeyPath, why: str, hint: str) -> Diagnostic:
        said = self._said(path)
        return Diagnostic(f"{dotted(path)}{said and f' = {said}'} {why}", self._at(path), hint)

    def _said(self, path: KeyPath) -> str:
        """A single value as it was written; nothing for a section or an absent key."""
        value = lookup(self.theirs.data, path)
        return "" if value is None or isinstance(value, dict | list) else shown(value)

    def _at(self, path: KeyPath) -> Span | None:
        return span_of(path, self.theirs)


class Section:
    """One mapping of another lab's spec, which knows which of its keys have been read; `top` is the whole file."""

    def __init__(self, conversion: Conversion, path: KeyPath, top: Section | None = None) -> None:
        self.conversion = conversion
        self.top = top or self
        self.path = path
        found = lookup(conversion.theirs.data, path)
        self.data: dict[str, Any] = found if isinstance(found, dict) else {}
        self._read: set[str] = set()
        self._known: set[str] = set()
        self._below: dict[str, Section] = {}

    def at(self, key: str) -> KeyPath:
        """The path of a key."""
        return (*self.path, key)

    def set(self, key: str, native: str | KeyPath, value: Any, said: str = "") -> None:
        """Give a native setting a value that comes from this key; `said` is a remark on it."""
        self.conversion.set(native, value, self.at(key))
        if said:
            self.remark(key, said)

    def remark(self, key: str, text: str) -> None:
        """Say what became of a key."""
        self.conversion.remark(self.at(key), text)

    def lose(self, key: str, why: str, hint: str = "") -> None:
        """Name a key that changes results and has no counterpart."""
        self.conversion.lose(self.at(key), why, hint)

    def refuse(self, key: str, why: str, hint: str = "") -> None:
        """Name a key without which, or with which, there is no conversion."""
        self.conversion.refuse(self.at(key), why, hint)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, which counts as read; `default` where it is absent or null."""
        self._read.add(key)
        self.conversion.read_paths.add(self.at(key))
        value = self.data.get(key)
        return default if value is None else value

    def need(self, key: str) -> Any:
        """The value of a key that the other lab cannot do without."""
        value = self.get(key)
        if value is None:
            row = self.conversion.row_at(self.at(key))
            flag = f"give it by -s {row.ours[0]}=VALUE" if row and row.ours else ""
            hint = flag or f"{self.conversion.lab} has no default for it"
            self.refuse(key, "is missing", hint)
        return value

    def whole(self, key: str, default: int) -> int:
        """A count, for arithmetic; anything else is refused."""
        value = self.get(key, default)
        if is_number(value) and float(value).is_integer():
            return int(value)
        self.refuse(key, "is not a whole number")
        return default

    def number(self, key: str) -> float | None:
        """A number, for arithmetic; None where it is absent. Anything else is refused."""
        value = self.get(key)
        if value is None or is_number(value):
            return value
        self.refuse(key, "is not a number")
        return None

    def copy(self, key: str, native: str, default: Any = None) -> None:
        """Take a value over as it is; where it is absent, the other lab's own default, or else nothing."""
        value = self.get(key, default)
        if value is not None:
            self.set(key, native, value)

    def only(self, key: str, accepted: Mapping[Any, Any] | Sequence[Any], why: str = "", default: Any = None) -> Any:
        """What an accepted value stands for, in a list for itself; None, and a loss, for any other."""
        value = self.get(key, default)
        if isinstance(value, dict | list) or value not in accepted:
            names = ", ".join(str(each) for each in accepted if each is not None)
            self.lose(key, why or f"has no counterpart; there are {names}")
            return None
        return accepted[value] if isinstance(accepted, Mapping) else value

    def below(self, key: str) -> Section:
        """The section under a key, always the same one; an empty one where there is none."""
        if key not in self._below:
            self._below[key] = Section(self.conversion, self.at(key), self.top)
            if not isinstance(self.get(key, {}), dict):
                self.refuse(key, "is not a section")
        return self._below[key]

    def items(self, key: str) -> list[Section]:
        """The sections of a list, in order and always the same ones; none where there is no list of sections."""
        found = self.get(key, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.refuse(key, "is not a list of sections")
            return []
        paths = [(*self.at(key), index) for index in range(len(found))]
        return [self._below.setdefault(f"{key}.{path[-1]}", Section(self.conversion, path, self.top)) for path in paths]

    def lacks(self, reasons: Mapping[str, str], harmless: Sequence[Any] = ()) -> None:
        """Name as lost the keys that change results and have no counterpart, unless they say what is so anyway."""
        self._known.update(reasons)
        for key, why in reasons.items():
            value = self.get(key)
            if value is not None and not any(value is each or value == each for each in harmless):
                self.lose(key, why)

    def drop(self, reasons: Mapping[str, str]) -> None:
        """Leave out keys that change nothing, each with the reason."""
        self._known.update(reasons)
        for key, why in reasons.items():
            if key in self.data and key not in self._read and self.get(key) is not None:
                self.remark(key, why)

    def skip(self) -> None:
        """Leave everything unread as it is, because the section as a whole was refused."""
        for key in self.data:
            self.get(key)

    def close_all(self) -> None:
        """Close this section and every one below it that was looked into."""
        self.close()
        for each in self._below.values():
            each.close_all()

    def unread(self) -> list[str]:
        """The keys that nobody has asked for, other than those that say null."""
        return [key for key, value in self.data.items() if key not in self._read and value is not None]

    def close(self) -> None:
        """Whatever is left was not understood; it is left out where the lab's program ignores what it does not know."""
        if not self.conversion.table.ignores:
            self.refuse_unread()
            return
        for key in self.unread():
            near = did_you_mean(key, self._read | self._known)
            said = f"left out: {self.conversion.lab} reads no such key{f'; {near}' if near else ''}"
            self.remark(key, said)
            self.get(key)

    def refuse_unread(self) -> None:
        """Name as lost whatever nobody has asked for."""
        for key in self.unread():
            near = did_you_mean(key, self._read | self._known)
            self.lose(key, "is not a key that is understood here", near)
            self.get(key)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value can be counted with; a truth value cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool)
