"""All that the rollouts of a task have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from operant.envs.research.grading import Split, Work, graded
from operant.envs.research.rewards import Scale
from operant.envs.research.schema import MEBIBYTE
from operant.envs.research.source import Source
from operant.envs.sandbox import Kind, Sandbox, open_sandbox
from operant.envs.secret import Secret

Style = Literal["words", "bare"]
Keep = Literal["best", "last"]
Purpose = Literal["files", "validation", "hidden", "noise"]


@dataclass(frozen=True)
class Settings:
    """Where a task was written down, and the arguments that change its rollouts.

    Of what a rollout validated, `keep` says which artefacts are graded at its end. `noise` is added to the scores
    that are shown, as a standard deviation in the metric's unit, and `fault_penalty` is what a fault costs. From
    `secret` come all seeds: those of a problem's files, of validations and of the end are drawn apart.
    """

    folder: Source
    data: Mapping[str, Path]
    style: Style
    output_bytes: int
    turns: int
    validations: int
    noise: float
    keep: Keep
    fault_penalty: float
    kind: Kind
    secret: Secret

    def seed(self, purpose: Purpose, problem: int, *parts: object) -> int:
        """The seed of a problem of this task for a purpose."""
        return self.secret.seed(purpose, self.folder.task.name, problem, *parts)

    def files(self, problem: int) -> dict[str, bytes]:
        """What the workspace holds at the start of a problem."""
        return self.folder.files(self.data, self.seed("files", problem))

    @property
    def scale(self) -> Scale:
        """How raw scores are read."""
        task = self.folder.task
        return Scale(task.baseline, task.ceiling, task.metric.direction)

    @property
    def largest(self) -> int:
        """The most bytes of an artefact."""
        return self.folder.task.limits.artefact_mb * MEBIBYTE

    def opened(self) -> Sandbox:
        """A fresh sandbox for a workspace."""
        limits = self.folder.task.limits.sandbox()
        return open_sandbox(self.kind, limits, readable=self.folder.packages.folders)

    def grade(self, artefacts: Mapping[str, bytes], split: Split, seed: int, problem: int) -> float:
        """The raw score of artefacts; the problem's files are divided as they were at its start."""
        work = Work(
            artefacts,
            split,
            seed,
            self.folder.hidden,
            self.data,
            self.seed("files", problem),
            self.folder.task.limits.sandbox(),
            self.folder.packages,
            self.kind,
        )
        return graded(self.folder.grade, work)
