"""What a research task is made of, wherever it was written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from operant.envs.research.grading import Work
from operant.envs.research.packages import Packages
from operant.envs.research.schema import TaskFile
from operant.envs.text.dialogue import Kind, Scripted


class Source(ABC):
    """A task's description, its files and its grader (abstract).

    `marks` are warnings that whoever reads a score of this task should know; `agent_kinds` are the kinds of scripted
    agents that it should have.
    """

    task: TaskFile
    marks: tuple[str, ...] = ()
    agent_kinds: tuple[Kind, ...] = get_args(Kind)

    @property
    @abstractmethod
    def hidden(self) -> Path:
        """The files that never enter the agent's sandbox."""

    @property
    @abstractmethod
    def packages(self) -> Packages:
        """What programs in a sandbox of this task may import."""

    @property
    @abstractmethod
    def agents(self) -> Mapping[str, Scripted]:
        """The scripted agents by name."""

    def shorten(self, seconds: float) -> None:
        """Let every program of the task, its evaluation among them, run for so long at most."""
        limits = self.task.limits
        shorter = {"seconds": min(seconds, limits.seconds), "total_seconds": min(4 * seconds, limits.total_seconds)}
        self.task = self.task.model_copy(update={"limits": limits.model_copy(update=shorter)})

    @abstractmethod
    def grade(self, work: Work) -> float:
        """The raw score of an agent's work."""

    @abstractmethod
    def data(self, root: str | None) -> dict[str, Path]:
        """The data files by their names; `UsageError` for one that is not there."""

    @abstractmethod
    def files(self, data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
        """What the workspace holds at the start of the problem `seed`."""
