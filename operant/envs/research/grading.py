"""What a grader is given: the artefacts as bytes, the hidden files, and fresh sandboxes to try programs in.

A grader is trusted code and runs outside every sandbox. Its score comes from data that it holds itself: opponents,
labels and random numbers never enter a sandbox, and what a program of the agent's says is only its move or its
guess, never its score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from operant.envs.research.packages import Packages
from operant.envs.research.player import PRELUDE, Player, Unfit
from operant.envs.sandbox import Kind, Limits, Sandbox, SandboxDied, SandboxKilled, open_sandbox, retried, sandbox_works
from operant.errors import OperantError, UsageError

__all__ = ["GraderBroken", "GraderFailed", "Player", "Split", "Unfit", "Work", "finite", "graded"]

LONGEST = 500

Split = Literal["validation", "hidden"]


@dataclass(frozen=True)
class Work:
    """The work of an agent, as a grader gets it.

    `artefacts` are the declared files as they were read out of the agent's sandbox: regular files of limited size;
    a missing one is absent. `seed` decides all that is random in this grading; no two validations that are graded share
    one, and none shares the hidden one. `problem` is the seed that `files(data, seed)` of the grader was given, for
    splits that must be the same every time. Both are drawn from a secret (operant.envs.secret).
    `hidden` is the task's folder of that name, `data` the files by their names.
    """

    artefacts: Mapping[str, bytes]
    split: Split
    seed: int
    hidden: Path
    data: Mapping[str, Path] = field(default_factory=dict)
    problem: int = 0
    limits: Limits = field(default_factory=Limits)
    packages: Packages = field(default_factory=Packages)
    kind: Kind = "auto"

    def artefact(self, name: str) -> bytes:
        """The bytes of an artefact; `Unfit` where it is missing."""
        if name not in self.artefacts:
            raise Unfit(f"there is no {name}")
        return self.artefacts[name]

    def text(self, name: str) -> str:
        """An artefact as text; `Unfit` where it is missing or no UTF-8."""
        try:
            return self.artefact(name).decode("utf-8")
        except UnicodeDecodeError as problem:
            raise Unfit(f"{name} is no text in UTF-8") from problem

    def sandbox(self, files: Mapping[str, bytes]) -> Sandbox:
        """A fresh sandbox with these files and the task's limits and packages; close it, best by `with`."""
        return open_sandbox(self.kind, self.limits, files, readable=self.packages.folders)

    @contextmanager
    def player(self, program: str, files: Mapping[str, bytes], seconds: float) -> Iterator[Player]:
        """A fresh sandbox with `files`, in which `program`, a text of the grader's, answers for `seconds` in all.

        The program defines a function of one JSON value and ends with `answer(function)`, which is there for it: the
        pipes are kept from the code that it imports, so that what that prints goes nowhere.
        """
        with self.sandbox(files) as sandbox:
            argv = [sandbox.python, "-B", "-c", PRELUDE + program]
            running = sandbox.start(argv, environment=self.packages.environment)
            try:
                yield Player(running, seconds)
            finally:
                running.close()


class GraderFailed(Unfit):
    """The grader broke down over an artefact, or gave no number: worth the baseline, told, and not fined."""

    kind = "grader"


class GraderBroken(OperantError):
    """The grader fails whatever is handed in: an error of the task, for which no agent is fined."""

    kind = "grader"


# What the task, the machine or the installation is at fault for, whatever was delivered.
NOT_THE_AGENTS = (GraderBroken, SandboxDied, UsageError, OSError, MemoryError)


def graded(grade: Callable[[Work], float], work: Work) -> float:
    """What the grader says of an artefact; `Unfit` for all that an artefact can bring about instead of a score.

    A sandbox that dies, where others live, died of the artefact, and a grader that fails, of what it was given to read,
    unless it fails without any artefact too. Only faults of the task and of the machine are raised as what they are.
    """
    try:
        raw = float(retried(lambda: grade(work), lambda: sandbox_works(work.kind)))
    except SandboxKilled as killed:
        raise Unfit(killed.cause) from killed
    except (Unfit, *NOT_THE_AGENTS):
        raise
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"[:LONGEST]
        if _fails_on_nothing(grade, work):
            raise GraderBroken(f"the grader of this task is broken, it fails on no files at all: {said}") from problem
        raise GraderFailed(f"the grader failed on this: {said}") from problem
    if not math.isfinite(raw):
        raise GraderFailed(f"the grader gave {raw} for this, which is no score")
    return raw


def _fails_on_nothing(grade: Callable[[Work], float], work: Work) -> bool:
    """Whether a grader fails though there is nothing that could make it: with no artefact it should say so."""
    try:
        grade(replace(work, artefacts={}))
    except OperantError:
        return False
    except Exception:
        return True
    return False


def finite(value: object, what: str = "an answer") -> float:
    """A number that a program has given; `Unfit` where it is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"{what} is no number: {str(value)[:80]!r}")
    try:
        number = float(value)
    except OverflowError as problem:
        raise Unfit(f"{what} is too large") from problem
    if not math.isfinite(number):
        raise Unfit(f"{what} is not finite")
    return number
