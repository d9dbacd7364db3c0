"""How often a task's verifier is wrong, without a model: answers that are known to be right, and others that are not.

Right are the gold answers and their equivalents, the same answers in other forms. Wrong are other problems' answers,
near misses, and the cheats. A right answer that is refused is a false negative, a wrong one that is paid a false
positive; a verdict that is invalid is neither, and counted by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Literal

from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task, Verdict
from operant.errors import UsageError

SAMPLES = 1_000
MOST_TRIES = 20  # draws for one wrong answer: where few answers differ, most others are right too
MOST_GOLD = 20_000  # problems of a split

Kind = Literal["gold", "equivalent", "near_miss", "other", "cheat"]
RIGHT_KINDS: tuple[Kind, ...] = ("gold", "equivalent")
WRONG_KINDS: tuple[Kind, ...] = ("near_miss", "other", "cheat")


@dataclass(frozen=True)
class Sample:
    """An answer to verify, and the name of its form."""

    problem: Problem
    form: str
    answer: str


@dataclass(frozen=True)
class GradedSample:
    """A sample and its verdict."""

    sample: Sample
    verdict: Verdict


@dataclass
class VerdictCounts:
    """What became of the answers of one kind: how many have a verdict, and which of these are wrong about them.

    `forms` has for each form how many answers were verified and how many of the verdicts are wrong.
    """

    valid: int = 0
    errors: list[GradedSample] = field(default_factory=list)
    invalid: list[GradedSample] = field(default_factory=list)
    forms: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, graded: GradedSample, mistaken: Callable[[float], bool]) -> None:
        """Count a verdict; `mistaken` says of a score whether it is wrong about an answer of this kind."""
        score, form = graded.verdict.score, graded.sample.form
        if score is None:
            self.invalid.append(graded)
            return
        error = mistaken(score)
        self.valid += 1
        if error:
            self.errors.append(graded)
        count, errors = self.forms.get(form, (0, 0))
        self.forms[form] = count + 1, errors + error


MISTAKEN: dict[Kind, Callable[[float], bool]] = {
    "gold": lambda score: score != 1.0,
    "equivalent": lambda score: score != 1.0,
    # Where there is credit for a part, a wrong answer may have earned some: paid is what scores as much as a right one.
    "near_miss": lambda score: score == 1.0,
    "other": lambda score: score == 1.0,
    "cheat": lambda score: score == 1.0,
}


@dataclass
class Report:
    """What was found of each kind of answers. `shared` are questions that are in both splits."""

    task: str
    problems: dict[str, int] = field(default_factory=dict)
    verdict_counts: dict[Kind, VerdictCounts] = field(
        default_factory=lambda: {kind: VerdictCounts() for kind in MISTAKEN}
    )
    seconds: float = 0.0
    shared: list[str] = field(default_factory=list)
    right_after_all: list[str] = field(default_factory=list)

    def errors(self, kinds: Iterable[Kind]) -> tuple[int, int]:
        """How many verdicts on answers of these kinds are wrong, and how many there are."""
        verdict_counts = [self.verdict_counts[kind] for kind in kinds]
        return sum(len(each.errors) for each in verdict_counts), sum(each.valid for each in verdict_counts)

    @property
    def invalid(self) -> int:
        """How many answers have no verdict."""
        return sum(len(counts.invalid) for counts in self.verdict_counts.values())

    @property
    def sound(self) -> bool:
        """Every gold answer is right, nothing wrong is paid, and no question is in both splits."""
        paid, wrong = self.errors(WRONG_KINDS)
        gold = self.verdict_counts["gold"]
        return not (gold.errors or gold.invalid or paid or self.shared) and gold.valid + wrong > 0


def validate(task: Task, verifiers: Verifiers, samples: int = SAMPLES, seed: int = 0) -> Report:
    """Verify every gold answer, and so many answers of each other kind; both splits, where the task has both."""
    began = time.monotonic()
    report = Report(task.name)
    splits = _splits(task)
    report.problems = {name: len(problems) for name, problems in splits.items()}
    report.shared = [] if task.ONE_SPLIT else _shared(splits)
    problems = [problem for split in splits.values() for problem in islice(split, MOST_GOLD)]
    golds = [Sample(problem, "gold", gold) for problem in problems if (gold := task.gold(problem)) is not None]
    _verify("gold", golds, task, verifiers, report)
    rng = Random(seed)
    equivalents = _drawn(problems, lambda problem: task.equivalents(problem, rng), samples, rng)
    _verify("equivalent", equivalents, task, verifiers, report)
    near_misses = _drawn(problems, lambda problem: task.near_misses(problem, rng), samples, rng)
    _verify("near_miss", near_misses, task, verifiers, report)
    _verify("cheat", _drawn(problems, task.cheats, samples, rng), task, verifiers, report)
    _verify_others(task, verifiers, problems, samples, rng, report)
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


def _drawn(
    problems: Sequence[Problem], forms_of: Callable[[Problem], Mapping[str, str]], count: int, rng: Random
) -> list[Sample]:
    """Up to `count` answers, each to a problem and in a form drawn by chance."""
    samples: list[Sample] = []
    for _ in range(2 * count):
        if len(samples) == count or not problems:
            break
        problem = rng.choice(problems)
        if forms := forms_of(problem):
            form = rng.choice(sorted(forms))
            samples.append(Sample(problem, form, forms[form]))
    return samples


def _verify(kind: Kind, samples: Sequence[Sample], task: Task, verifiers: Verifiers, report: Report) -> int:
    """Count the verdicts on samples; how many of these are right after all, and so not counted."""
    verdicts = verifiers.verify_all([(sample.problem, sample.answer) for sample in samples])
    right = 0
    for sample, verdict in zip(samples, verdicts, strict=True):
        paid = verdict.score == 1.0 and kind in ("near_miss", "other")
        if paid and task.right_after_all(sample.problem, sample.answer):
            report.right_after_all.append(sample.problem.id)
            right += 1
        else:
            report.verdict_counts[kind].add(GradedSample(sample, verdict), MISTAKEN[kind])
    return right


def _verify_others(
    task: Task, verifiers: Verifiers, problems: Sequence[Problem], count: int, rng: Random, report: Report
) -> None:
    """Verify other problems' answers; for one that is right after all another one is drawn."""
    for _ in range(MOST_TRIES):
        count = _verify("other", _others(task, problems, count, rng), task, verifiers, report)
        if not count:
            break


def _others(task: Task, problems: Sequence[Problem], count: int, rng: Random) -> list[Sample]:
    """Up to `count` problems with an answer that is not theirs."""
    samples: list[Sample] = []
    for _ in range(count * MOST_TRIES):
        if len(samples) == count or len(problems) < 2:
            break
        problem, other = rng.sample(problems, 2)
        answer = task.wrong(problem, other, rng)
        if answer is not None:
            samples.append(Sample(problem, "other", answer))
    return samples
