"""Which settings a child run may change, by the marks on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from operant.errors import UsageError
from operant.spec.child_marks import Mark, mark_of
from operant.spec.fields import Closed, Linear
from operant.spec.problems import shown
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Change:
    """A setting that differs in a child, and what its mark says of that."""

    path: str
    before: Any
    after: Any
    mark: Mark

    @property
    def allowed(self) -> bool:
        """Whether the parent's checkpoint stays what it is."""
        return self.mark.rule == "free" or (self.mark.rule == "widens" and self.after >= self.before)


def changes(before: Spec, after: Spec) -> list[Change]:
    """Every setting that differs between a parent and its child."""
    found = list(_differences(before, after, ""))
    # `auto` and the engine that it stands for are the same.
    return [each for each in found if each.path != "engine" or before.engine_name != after.engine_name]


def _differences(before: Closed, after: Closed, path: str) -> Iterator[Change]:
    kept = {**before.fixed_here(), **after.fixed_here()}
    for name, field in type(before).model_fields.items():
        if name not in type(after).model_fields:
            continue
        old, new = getattr(before, name), getattr(after, name)
        if _is_section(old) and _is_section(new):
            yield from _differences(old, new, f"{path}{name}.")
        elif old != new:
            mark = Mark("fixed", kept[name]) if name in kept else mark_of(field)
            assert mark is not None, f"{type(before).__name__}.{name} lacks its mark"
            yield Change(f"{path}{name}", old, new, mark)


def _is_section(value: Any) -> bool:
    """Whether a value has settings of its own; a schedule is one value."""
    return isinstance(value, Closed) and not isinstance(value, Linear)


def check_child(before: Spec, after: Spec, place: str, source: str) -> None:
    """`UsageError` for a change that the checkpoint of the parent at `place` does not allow.

    `source` is the parent's spec file, to start afresh from.
    """
    for change in changes(before, after):
        if change.allowed:
            continue
        only = "cannot shrink" if change.mark.rule == "widens" else "cannot change"
        old, new = shown(_plain(change.before)), shown(_plain(change.after))
        raise UsageError(
            f"{change.path} {only} in a child run, from {old} to {new}: {change.mark.why}",
            place=place,
            remedy=f"leave it out, or start afresh: operant train {source} -s {change.path}={new}",
        )


def _plain(value: Any) -> Any:
    """A value as a file would hold it; of a section its name, where it has one."""
    if isinstance(value, Closed):
        data = value.model_dump(mode="json")
        return data.get("name", data)
    return list(value) if isinstance(value, tuple) else value
