"""Whether a task's verifier is right, without a model: its own answers are right, and others' are not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Literal

from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task, Verdict
from operant.errors import UsageError

WRONG_ANSWERS = 1_000
MOST_TRIES = 20  # draws for one wrong answer: where few answers differ, most others are right too
MOST_GOLD = 20_000  # problems of a split

Split = Literal["train", "eval"]


@dataclass
class Report:
    """What was found: how many answers were verified, and those with a wrong verdict, by id."""

    task: str
    problems: dict[str, int] = field(default_factory=dict)
    gold: int = 0
    wrong: int = 0
    seconds: float = 0.0
    gold_failures: list[tuple[str, Verdict]] = field(default_factory=list)
    wrong_failures: list[tuple[str, Verdict]] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    right_after_all: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """No gold answer failed, no wrong one scored, and no question is in both splits."""
        return not (self.gold_failures or self.wrong_failures or self.shared) and self.gold + self.wrong > 0


def validate(task: Task, verifiers: Verifiers, wrong: int = WRONG_ANSWERS, seed: int = 0) -> Report:
    """Verify every gold answer and `wrong` answers that are none; both splits, where the task has both."""
    began = time.monotonic()
    report = Report(task.name)
    splits = _splits(task)
    report.problems = {name: len(problems) for name, problems in splits.items()}
    report.shared = [] if task.ONE_SPLIT else _shared(splits)
    problems = [problem for split in splits.values() for problem in islice(split, MOST_GOLD)]
    golds = [(problem, gold) for problem in problems if (gold := task.gold(problem)) is not None]
    report.gold = len(golds)
    for (problem, _), verdict in zip(golds, verifiers.verify_all(golds), strict=True):
        if verdict.score != 1.0:
            report.gold_failures.append((problem.id, verdict))
    _verify_wrong_answers(task, verifiers, problems, wrong, Random(seed), report)
    report.seconds = time.monotonic() - began
    return report


def _splits(task: Task) -> dict[str, Sequence[Problem]]:
    """The splits that a task has; a set that is for evaluation only has one."""
    found: dict[str, Sequence[Problem]] = {"eval": task.problems("eval")}
    try:
        return {"train": task.problems("train"), **found}
    except UsageError:
        return found


def _shared(splits: dict[str, Sequence[Problem]]) -> list[str]:
    """Problems for evaluation whose question is also asked in training."""
    asked = {problem.prompt for problem in islice(splits.get("train", ()), MOST_GOLD)}
    return [problem.id for problem in splits["eval"] if problem.prompt in asked]


def _verify_wrong_answers(
    task: Task, verifiers: Verifiers, problems: Sequence[Problem], count: int, rng: Random, report: Report
) -> None:
    """Verify wrong answers; for one that is right after all another one is drawn."""
    for _ in range(MOST_TRIES):
        drawn = _wrong_answers(task, problems, count, rng)
        count = 0
        for (problem, answer), verdict in zip(drawn, verifiers.verify_all(drawn), strict=True):
            if verdict.score == 1.0 and task.right_after_all(problem, answer):
                report.right_after_all.append(problem.id)
                count += 1
                continue
            report.wrong += 1
            if verdict.score != 0.0:
                report.wrong_failures.append((problem.id, verdict))
        if not count:
            break


def _wrong_answers(task: Task, problems: Sequence[Problem], count: int, rng: Random) -> list[tuple[Problem, str]]:
    """Up to `count` problems with an answer that is not theirs."""
    answers: list[tuple[Problem, str]] = []
    for _ in range(count * MOST_TRIES):
        if len(answers) == count or len(problems) < 2:
            break
        problem, other = rng.sample(problems, 2)
        answer = task.wrong(problem, other, rng)
        if answer is not None:
            answers.append((problem, answer))
    return answers
