"""Which runs of many, and in what order: for `operant runs` and everything else that lists runs."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from operant.errors import UsageError
from operant.report.experiment_row import ExperimentRow
from operant.run.tags import Tags

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
MEASURED = ("score", "frames", "seconds")
_CONDITION = re.compile(r"([^=<>!\s]+)\s*(!=|>=|<=|=|>|<)\s*(.*)")
ORDERS: dict[str, Callable[[ExperimentRow], Any]] = {
    "date": lambda row: 0,  # as they come
    "score": lambda row: float("inf") if row.score is None else -row.score.point,
    "cost": lambda row: float("inf") if row.cost is None else -row.cost.compute_seconds,
    "name": lambda row: (row.name, row.stamp),
}


@dataclass(frozen=True)
class Condition:
    """`agent.algorithm.gamma>=0.98`: a setting by its path or the end of it, or score, frames or seconds."""

    key: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition that is written; `UsageError` where it is none."""
        found = _CONDITION.fullmatch(text.strip())
        if found is None:
            remedy = "--where agent.algorithm.name=ppo, or --where 'score>400'"
            raise UsageError(f"{text!r} is no condition", place="--where", remedy=remedy)
        return cls(*found.groups())

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether a spec, by dotted path, fulfils it; a setting that is not there fulfils only `!=`."""
        values = [value for path, value in settings.items() if self.names(path)]
        return any(self.compares(value) for value in values) if values else self.sign == "!="

    def names(self, path: str) -> bool:
        """Whether a path is meant."""
        return f".{path}".endswith(f".{self.key}")

    def compares(self, value: Any) -> bool:
        """Whether a value stands so to the wanted one: as numbers where both are, else as text."""
        wanted = _number(self.value)
        mine = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if wanted is not None and mine is not None:
            return OPERATORS[self.sign](mine, wanted)
        if self.sign not in ("=", "!="):
            return False
        text = {True: "true", False: "false", None: "null"}.get(value) if value in (True, False, None) else str(value)
        return fnmatchcase(str(text), self.value) == (self.sign == "=")


@dataclass(frozen=True)
class RunFilter:
    """What runs must be like. `env` and `where` may be patterns (`ALE/*`); archived runs are left out unless wanted."""

    where: tuple[Condition, ...] = ()
    state: str | None = None
    env: str | None = None
    tags: tuple[str, ...] = ()
    text: str | None = None
    archived: bool = False

    def fits_spec(self, name: str, settings: Mapping[str, Any], tags: Tags) -> bool:
        """Whether a run is wanted as far as its settings, by dotted path, and tags say; its results are read later."""
        env = str(settings.get("env.name", ""))
        words = " ".join([name, env, str(settings.get("agent.algorithm.name", "")), *tags.tags]).lower()
        return (
            (self.archived or not tags.archived)
            and (self.env is None or fnmatchcase(env, self.env))
            and set(self.tags) <= set(tags.tags)
            and (self.text is None or self.text.lower() in words)
            and all(each.holds(settings) for each in self.where if each.key not in MEASURED)
        )

    def fits_row(self, row: ExperimentRow) -> bool:
        """Whether it is wanted as far as its results say."""
        measured = {
            "score": None if row.score is None else row.score.point,
            "frames": row.frames,
            "seconds": row.seconds,
        }
        conditions = [each for each in self.where if each.key in MEASURED]
        return (self.state is None or row.state == self.state) and all(
            measured[each.key] is not None and each.compares(measured[each.key]) for each in conditions
        )

    def refuse_unknown(self, runs: Iterable[Mapping[str, Any]]) -> None:
        """`UsageError` for a setting that not one of the runs has, with the nearest names."""
        paths = {path for settings in runs for path in settings}
        for each in self.where:
            if paths and each.key not in MEASURED and not any(each.names(path) for path in paths):
                near = get_close_matches(each.key, sorted({*paths, *(path.rpartition(".")[2] for path in paths)}), n=2)
                hint = f"did you mean {' or '.join(near)}?" if near else "`operant help` lists the settings"
                raise UsageError(f"no run has a setting {each.key}", place="--where", remedy=hint)


def ordered(rows: Iterable[ExperimentRow], order: str) -> list[ExperimentRow]:
    """Rows that come newest first: as they come, best first, dearest first, or by name.

    The dearest is told by its price where every run with an account has one, else by CPU- and GPU-seconds.
    """
    if order not in ORDERS:
        raise UsageError(f"there is no order {order!r}", remedy=f"--sort {', '.join(ORDERS)}")
    found = list(rows)
    key = _dollars if order == "cost" and is_priced(found) else ORDERS[order]
    return sorted(found, key=key)


def is_priced(rows: Sequence[ExperimentRow]) -> bool:
    """Whether the price is known of every run that kept an account."""
    costs = [row.cost for row in rows if row.cost is not None]
    return bool(costs) and all(cost.dollars is not None for cost in costs)


def _dollars(row: ExperimentRow) -> float:
    return float("inf") if row.cost is None else -(row.cost.dollars or 0.0)


def conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """The conditions that are written."""
    return tuple(Condition.parse(text) for text in texts)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
