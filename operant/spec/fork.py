"""Which settings a fork of a run may change, by the rule on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from operant.errors import UsageError
from operant.spec.fields import Closed, ForkRule, fork_rule
from operant.spec.reading.diagnostics import shown
from operant.spec.schedules import ScheduleSpec
from operant.spec.schema import Spec

UNMARKED = ForkRule("fixed", "its class does not mark it as free to change")


@dataclass(frozen=True)
class Change:
    """A setting that differs in a fork, and its rule."""

    path: str
    before: Any
    after: Any
    rule: ForkRule

    @property
    def allowed(self) -> bool:
        """Whether the parent's checkpoint stays what it is."""
        return self.rule.kind == "free" or (self.rule.kind == "widens" and self.after >= self.before)


def changes(before: Spec, after: Spec) -> list[Change]:
    """Every setting that differs between a run and its fork."""
    found = list(_differences(before, after, ""))
    # `auto` and the engine that it stands for are the same.
    return [each for each in found if each.path != "engine" or before.engine_name != after.engine_name]


def _differences(before: Closed, after: Closed, path: str) -> Iterator[Change]:
    kept = {**before.fixed_in_fork(), **after.fixed_in_fork()}
    for name, field in type(before).model_fields.items():
        if name not in type(after).model_fields:
            continue
        old, new = getattr(before, name), getattr(after, name)
        if _is_section(old) and _is_section(new):
            yield from _differences(old, new, f"{path}{name}.")
        elif old != new:
            rule = ForkRule("fixed", kept[name]) if name in kept else fork_rule(field) or UNMARKED
            yield Change(f"{path}{name}", old, new, rule)


def _is_section(value: Any) -> bool:
    """Whether a value has settings of its own; a schedule is one value."""
    return isinstance(value, Closed) and not isinstance(value, ScheduleSpec)


def check_fork(before: Spec, after: Spec, place: str, source: str) -> None:
    """`UsageError` for a change that the checkpoint of the parent at `place` does not allow.

    `source` is the parent's spec file, to start afresh from.
    """
    for change in changes(before, after):
        if change.allowed:
            continue
        only = "cannot shrink" if change.rule.kind == "widens" else "cannot change"
        old, new = shown(_plain(change.before)), shown(_plain(change.after))
        raise UsageError(
            f"{change.path} {only} in a forked run, from {old} to {new}: {change.rule.why}",
            place=place,
            remedy=f"leave it out, or start afresh: operant train {source} -s {change.path}={new}",
        )


def _plain(value: Any) -> Any:
    """A value as a file would hold it; of a section its name, where it has one."""
    if isinstance(value, Closed):
        data = value.model_dump(mode="json")
        return data.get("name", data)
    return list(value) if isinstance(value, tuple) else value
