"""The order in which training asks its problems: an endless sequence from one task or several.

`ProblemSampler.take(position, count)` is a pure function of the arguments and the position, so a run that resumes needs
to know nothing but how many problems it has taken.

* `weighted`: parts by their weights. Positions come in blocks of `BLOCK`; each block holds every part in exact
  proportion to its weight (at least once), in an order shuffled by the seed. Each part walks through its own problems,
  so none of a part comes again before all others of that part have come. With a curriculum the weights move, block by
  block, from `weight` to `weight_end`, and stay there; a part that ends at 0 comes no more.
* `sequential`: one part after another, `count` problems of each (all of them by default); after the last part the
  first comes again.

Within a part the order is shuffled anew for every pass. An order file fixes it instead: its ids in its order, pass
after pass, and no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Literal

from operant.envs.text.task import Problem, Task
from operant.errors import UsageError

BLOCK = 1_000
PASSES_KEPT = 2

Mode = Literal["weighted", "sequential"]


@dataclass(frozen=True)
class Part:
    """A task in a course: its weight where parts are mixed, its count where they follow each other.

    `weight_end` is its weight after a curriculum, where that is another.
    """

    task: Task
    weight: float = 1.0
    count: int | None = None
    order: str | Path | None = None
    weight_end: float | None = None

    @property
    def final_weight(self) -> float:
        """Its weight when the curriculum is over, or always where there is none."""
        return self.weight if self.weight_end is None else self.weight_end


def adapted(problem: Problem, stop: Sequence[str] | None, system: str, prefix: str) -> Problem:
    """A problem with other stop strings, and with a system text and a beginning of the answer if it has none."""
    return replace(
        problem,
        stop=problem.stop if stop is None else tuple(stop),
        system=problem.system or system or None,
        prefix=problem.prefix or prefix,
    )


class ProblemSampler:
    """Training problems in their order, and problems held out for evaluation, each as `adapt` makes it (final)."""

    def __init__(
        self,
        parts: Sequence[Part],
        mode: Mode = "weighted",
        seed: int = 0,
        shuffle: bool = True,
        adapt: Callable[[Problem], Problem] = lambda problem: problem,
        curriculum: int | None = None,
    ) -> None:
        """`curriculum` is the number of problems over which weights move to their ends."""
        _check(parts, mode, curriculum)
        self._adapt = adapt
        self.parts = tuple(parts)
        self.mode: Mode = mode
        self.seed = seed
        self._walks = [_walk(part, seed, shuffle) for part in parts]
        if mode == "weighted":
            self._quotas = [_quota(parts, share) for share in _curriculum_shares(parts, curriculum)]
        else:
            self._quotas = [[part.count or walk.length for part, walk in zip(parts, self._walks, strict=True)]]
        self._before = [[0] * len(parts)]
        for quota in self._quotas:
            self._before.append([had + more for had, more in zip(self._before[-1], quota, strict=True)])
        self._block = lru_cache(maxsize=2)(self._plan)

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the parts."""
        return [part.task for part in self.parts]

    @property
    def length(self) -> int:
        """How many different problems the course holds."""
        return sum(walk.length for walk in self._walks)

    def take(self, position: int, count: int) -> list[Problem]:
        """The problems at position, position + 1, ..."""
        return [self._adapt(self._at(place)) for place in range(position, position + count)]

    def held_out(self, count: int, seed: int = 0) -> list[Problem]:
        """`count` problems of the eval splits, in proportion to the parts' last weights (or counts), drawn by `seed`.

        A split with fewer problems gives all it has. Always the same ones in the same order.
        """
        weighted = self.mode == "weighted"
        weights = [part.final_weight for part in self.parts] if weighted else self._quotas[-1]
        chosen: list[Problem] = []
        for part, share in zip(self.parts, shares(weights, count), strict=True):
            chosen += held_out(part.task, share, seed)
        return [self._adapt(problem) for problem in chosen]

    def _at(self, position: int) -> Problem:
        block, offset = divmod(position, sum(self._quotas[-1]))
        part, earlier = self._block(block)[offset] if self.mode == "weighted" else self._phase(offset)
        return self._walks[part].problem(self._turns_before(block, part) + earlier)

    def _turns_before(self, block: int, part: int) -> int:
        """How many problems of a part come before a block: those of the curriculum, and then as many in each block."""
        last = len(self._quotas) - 1
        constant = max(0, block - last) * self._quotas[-1][part]
        return self._before[min(block, last)][part] + constant

    def _phase(self, offset: int) -> tuple[int, int]:
        """The phase that an offset of a round falls into, and how many turns it has had in this round."""
        quota = self._quotas[-1]
        ends = list(accumulate(quota))
        part = bisect_right(ends, offset)
        return part, offset - ends[part] + quota[part]

    def _plan(self, block: int) -> list[tuple[int, int]]:
        """For every offset of a block, the part whose turn it is and how many turns it has had in this block."""
        quotas = self._quotas[min(block, len(self._quotas) - 1)]
        turns = [part for part, quota in enumerate(quotas) for _ in range(quota)]
        Random(f"block/{self.seed}/{block}").shuffle(turns)
        had = [0] * len(quotas)
        plan = []
        for part in turns:
            plan.append((part, had[part]))
            had[part] += 1
        return plan


def held_out(task: Task, count: int, seed: int = 0) -> list[Problem]:
    """`count` problems of a task's eval split (all, where it has fewer), drawn by `seed`, in the split's order."""
    problems = task.problems("eval")
    rng = Random(f"held out/{seed}/{task.name}")
    places = sorted(rng.sample(range(len(problems)), min(count, len(problems))))
    return [problems[place] for place in places]


@dataclass(frozen=True)
class _Walk:
    """The problems of a part, one after another without end."""

    problems: Sequence[Problem]
    length: int
    order_of_pass: Callable[[int], Sequence[int]]

    def problem(self, step: int) -> Problem:
        """The problem of a step, a pure function of it."""
        number, place = divmod(step, self.length)
        return self.problems[self.order_of_pass(number)[place]]


def _walk(part: Part, seed: int, shuffle: bool) -> _Walk:
    problems = part.task.problems("train")
    if not len(problems):
        raise UsageError(f"task {part.task.name} has no problems for training")
    if part.order is not None:
        listed = ordered(Path(part.order), problems)
        return _Walk(problems, len(listed), lambda _: listed)
    if not shuffle:
        return _Walk(problems, len(problems), lambda _: range(len(problems)))

    @lru_cache(maxsize=PASSES_KEPT)
    def shuffled(number: int) -> list[int]:
        places = list(range(len(problems)))
        Random(f"pass/{seed}/{part.task.name}/{number}").shuffle(places)
        return places

    return _Walk(problems, len(problems), shuffled)


def ordered(path: Path, problems: Sequence[Problem]) -> list[int]:
    """The places of the problems that an order file names, one id a line; an id that is not there is an error."""
    try:
        ids = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as problem:
        raise UsageError(f"the order file cannot be read: {problem.strerror}", place=str(path)) from problem
    places = {problem.id: place for place, problem in enumerate(problems)}
    unknown = [name for name in ids if name not in places]
    if unknown:
        near = get_close_matches(unknown[0], list(places)[:20_000], n=1, cutoff=0.0)
        named = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
        raise UsageError(
            f"{len(unknown)} of {len(ids)} ids are no problems of this task: {named}",
            place=str(path),
            remedy=f"ids look like {near[0]}; operant tasks show lists some" if near else None,
        )
    if not ids:
        raise UsageError("the order file names no problem", place=str(path))
    return [places[name] for name in ids]


def _curriculum_shares(parts: Sequence[Part], problems: int | None) -> list[float]:
    """How far the weights of each block are on their way to the last ones, which hold from then on."""
    if problems is None:
        return [0.0]
    blocks = max(1, round(problems / BLOCK))
    return [block / blocks for block in range(blocks + 1)]


def _quota(parts: Sequence[Part], share: float) -> list[int]:
    """Problems of each part in a block, `share` of the way through the curriculum; at least one, if it has a weight."""
    weights = [part.weight + share * (part.final_weight - part.weight) for part in parts]
    present = [place for place, weight in enumerate(weights) if weight > 0]
    quota = [0] * len(parts)
    for place, turns in zip(present, shares([weights[place] for place in present], BLOCK, least=1), strict=True):
        quota[place] = turns
    return quota


def shares(weights: Sequence[float], total: int, least: int = 0) -> list[int]:
    """`total` in whole parts in proportion to weights, by largest remainders, each part at least `least`."""
    whole = sum(weights)
    exact = [total * weight / whole for weight in weights]
    given = [max(least, int(share)) for share in exact]
    by_remainder = sorted(range(len(weights)), key=lambda part: int(exact[part]) - exact[part])
    for part in by_remainder[: max(0, total - sum(given))]:
        given[part] += 1
    return given


def _check(parts: Sequence[Part], mode: str, curriculum: int | None) -> None:
    if mode not in ("weighted", "sequential"):
        raise UsageError(f"there is no mixture mode {mode!r}", remedy="mode: weighted, or mode: sequential")
    if not parts:
        raise UsageError("a course needs at least one task")
    _check_curriculum(parts, mode, curriculum)
    names = [part.task.name for part in parts]
    for part in parts:
        if not (part.weight > 0 or (part.weight == 0 and part.final_weight > 0)):
            raise UsageError(f"the weight of {part.task.name} must be above zero, not {part.weight}")
        if part.count is not None and part.count < 1:
            raise UsageError(f"the count of {part.task.name} must be at least 1, not {part.count}")
        if names.count(part.task.name) > 1:
            raise UsageError(
                f"two tasks of the mixture are called {part.task.name}", remedy="give one of them a label of its own"
            )


def _check_curriculum(parts: Sequence[Part], mode: str, curriculum: int | None) -> None:
    moving = any(part.weight_end is not None for part in parts)
    if moving and curriculum is None:
        raise UsageError("weight_end is given, but no curriculum", remedy="env.text.curriculum: its length in problems")
    if curriculum is None:
        return
    if mode != "weighted" or not moving:
        raise UsageError(
            "a curriculum moves the weights of a weighted mixture, and there are none to move",
            remedy="mode: weighted, and weight_end for a task of the mixture; or leave curriculum out",
        )
    for weights in ([part.weight for part in parts], [part.final_weight for part in parts]):
        if not any(weights):
            raise UsageError("every task of the mixture has weight 0 at one end of the curriculum")
