"""One experiment in a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.report.cost import Cost, cost_of
from operant.report.stats import Estimate


@dataclass(frozen=True)
class ExperimentRow:
    """One experiment. `score` is over the seeds of its best trial; `score_is_final` says whether training was over.

    `seconds` are those that its sessions trained, added up; `cost` is read where rows are ordered by it.

    An experiment whose files cannot be read has state "unreadable" and the reason in `error`.
    """

    name: str
    stamp: str
    path: Path
    state: str
    trials: int
    sessions_done: int
    sessions: int
    frames: int
    score: Estimate | None
    score_is_final: bool
    age: float | None
    error: str | None = None
    env: str | None = None
    algorithm: str | None = None
    seconds: float = 0.0
    tags: tuple[str, ...] = ()
    archived: bool = False
    cost: Cost | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row for `--json`, age in seconds; with the cost, for which a file of each session is read."""
        cost = self.cost or cost_of(self.path)
        return {
            **self.__dict__,
            "path": str(self.path),
            "score": None if self.score is None else self.score.as_dict(),
            "cost": None if cost is None else cost.as_dict(),
        }
