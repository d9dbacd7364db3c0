"""Rounds of generation: prompts are rendered, answered in groups, and judged."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from operant.engines.language.generation.generator import Completion, Generator, Prompt, Sampling
from operant.engines.language.policy.chat_template import Template, render
from operant.engines.language.policy.model import Policy
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.task import Problem, Verdict, failed
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress


@dataclass(frozen=True)
class Step:
    """One call of the policy: the tokens that it was asked with, and what it wrote."""

    prompt: tuple[int, ...]
    completion: Completion


@dataclass(frozen=True)
class Answer:
    """What a policy wrote, in one step or in many, and what that was judged to be worth; `reward` is learnt from.

    `turns` are the words of a dialogue, which is learnt from as one sample if it is `interleaved`, and which was `cut`
    if it did not come to its own end. It `took` so many seconds.
    """

    steps: tuple[Step, ...]
    verdict: Verdict
    reward: float
    turns: tuple[Turn, ...] = ()
    interleaved: bool = False
    cut: bool = False
    took: float | None = None

    @property
    def completion(self) -> Completion:
        """What was written last."""
        return self.steps[-1].completion

    @property
    def length(self) -> int:
        """All tokens that were written."""
        return sum(len(step.completion.tokens) for step in self.steps)

    @property
    def version(self) -> int:
        """The updates of the oldest weights that wrote a part of it."""
        return min(step.completion.version for step in self.steps)


class Judges(Protocol):
    """Give verdicts: `Verifiers` in processes here, or others elsewhere."""

    def verify_all(
        self,
        answers: Sequence[tuple[Problem, str]],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[Verdict]:
        """The verdicts on answers, in their order; those that have not come `within` so many seconds are errors."""
        ...

    def close(self) -> None:
        """Let go of processes."""
        ...


@dataclass(frozen=True)
class Group:
    """The answers to one problem; those that came late or whose judging failed are left out, and counted.

    `place` is the prompt's place in the course, by which it is accounted for; problems of examinations have none.
    """

    problem: Problem
    prompt: Prompt
    answers: tuple[Answer, ...]
    errors: tuple[str, ...] = ()
    place: int | None = None

    @property
    def version(self) -> int:
        """The updates of the oldest weights that wrote an answer; without answers it is as good as new."""
        return min((answer.version for answer in self.answers), default=2**62)

    @property
    def rewards(self) -> list[float]:
        """The rewards of the answers, in order."""
        return [answer.reward for answer in self.answers]

    @property
    def teaches(self) -> bool:
        """Whether some answers are better than others."""
        return len(set(self.rewards)) > 1


@dataclass
class Timing:
    """Seconds spent by part, and tokens written, since the last row."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    tokens: int = 0


class Player(Protocol):
    """Plays problems that one answer does not settle."""

    def play(self, problems: Sequence[Problem], sampling: Sampling) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem, in the order of the problems."""
        ...


class Rounds:
    """Answers problems with a generator and judges the answers; tasks named in `players` are played by others.

    `overlong` is what becomes of completions that were cut off by their length: judged as they are
    ("keep", and "mask", which the learner attends to), or worth nothing ("zero").
    """

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        verifiers: Judges,
        template: Template,
        max_tokens: int | None,
        overlong: str,
        witness: Witness | None = None,
        lane: str = "generator",
    ) -> None:
        self.policy = policy
        self.generator = generator
        self.verifiers = verifiers
        self.template: Template = template
        self.max_tokens = max_tokens
        self.overlong = overlong
        self.timing = Timing()
        self.witness = witness or Witness()
        self.lane = lane
        self.judges = "verifiers" if lane == "generator" else f"verifiers of {lane}"
        self.pulse = self.witness.watch.pulse(lane)
        self.judging = self.witness.watch.pulse(self.judges)
        self.players: dict[str, Player] = {}

    def play(self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[int] = ()) -> list[Group]:
        """A group of `sampling.n` judged answers to each problem; `places` are the prompts' in the course."""
        guests = [index for index, problem in enumerate(problems) if problem.task in self.players]
        if guests:
            return self._placed(self._by_players(problems, sampling, places, guests), places)
        return self._placed(self._answered(problems, sampling, places), places)

    def _by_players(
        self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[int], guests: Sequence[int]
    ) -> list[Group]:
        """Groups of problems some of which have players of their own, in the order of the problems."""
        here = [index for index in range(len(problems)) if index not in set(guests)]
        found: dict[int, Group] = {}
        if here:
            own = self._answered(
                [problems[index] for index in here], sampling, [places[index] for index in here if places]
            )
            found |= dict(zip(here, own, strict=True))
        for player in dict.fromkeys(self.players[problems[index].task] for index in guests):
            theirs = [index for index in guests if self.players[problems[index].task] is player]
            found |= dict(zip(theirs, player.play([problems[index] for index in theirs], sampling), strict=True))
        for index in guests if places else ():
            group = found[index]
            tokens = sum(answer.length for answer in group.answers)
            self.witness.ledger.note(places[index], "generated", tokens=tokens, by=self.lane)
        return [found[index] for index in range(len(problems))]

    def _answered(self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[int]) -> list[Group]:
        """Groups of problems that are answered at once and judged by verifiers."""
        begun = time.perf_counter()
        prompts = [self.prompt(problem) for problem in problems]
        written = self._written(problems, prompts, sampling, places)
        generated = time.perf_counter()
        self.timing.seconds["generate"] += generated - begun
        self.timing.tokens += sum(len(each.tokens) for row in written for each in row)
        verdicts = iter(self._verdicts(problems, written, sampling.seconds))
        groups = [
            self._group(problem, prompt, row, [next(verdicts) for _ in row])
            for problem, prompt, row in zip(problems, prompts, written, strict=True)
        ]
        self.timing.seconds["verify"] += time.perf_counter() - generated
        return groups

    def span(self, name: str, **facts: object) -> AbstractContextManager[object]:
        """A span of the trace in this lane."""
        return self.witness.trace.span(name, self.lane, **facts)

    def _written(
        self, problems: Sequence[Problem], prompts: Sequence[Prompt], sampling: Sampling, places: Sequence[int]
    ) -> list[list[Completion]]:
        """Completions of every prompt."""
        words = f"writing {len(prompts)} prompts from {problems[0].id} on" if problems else "writing nothing"
        with (
            self.pulse.busy(words),
            self.witness.trace.span("generate", self.lane, prompts=len(prompts), completions=sampling.n),
        ):
            written = self.generator.generate(prompts, sampling)
        for index in getattr(self.generator, "redone", ()) if places else ():
            self.witness.ledger.note(places[index], "redone", by=self.lane)
        for place, row in zip(places, written, strict=False):
            tokens = sum(len(each.tokens) for each in row)
            self.witness.ledger.note(place, "generated", tokens=tokens, version=row[0].version, by=self.lane)
        return written

    def _verdicts(
        self, problems: Sequence[Problem], written: Sequence[Sequence[Completion]], within: float | None
    ) -> list[Verdict]:
        """A verdict on every completion, in order; one that was given up is not judged."""
        asked = [(problem, each) for problem, row in zip(problems, written, strict=True) for each in row]
        texts = [(problem, problem.prefix + each.text) for problem, each in asked if each.finish != "abort"]
        with (
            self.pulse.busy(f"waiting for {len(texts)} verdicts", self.judges),
            self.judging.busy(f"judging {len(texts)} answers"),
            self.witness.trace.span("verify", self.judges, answers=len(texts)),
        ):
            judged = iter(self.verifiers.verify_all(texts, within, self.judging.beat))
        late = failed(f"no completion within {within or 0:g} s")
        return [late if each.finish == "abort" else next(judged) for _, each in asked]

    def _placed(self, groups: list[Group], places: Sequence[int]) -> list[Group]:
        """The groups with the places of their prompts, whose judging is noted."""
        if not places:
            return groups
        for place, group in zip(places, groups, strict=True):
            self.witness.ledger.note(place, "judged", rewards=group.rewards, errors=len(group.errors))
        return [replace(group, place=place) for place, group in zip(places, groups, strict=True)]

    def prompt(self, problem: Problem) -> Prompt:
        """A problem as the policy is asked it."""
        asked = render(problem, self.policy, self.template)
        return asked if self.max_tokens is None else replace(asked, max_tokens=self.max_tokens)

    def _group(
        self, problem: Problem, prompt: Prompt, completions: Sequence[Completion], verdicts: Sequence[Verdict]
    ) -> Group:
        pairs = list(zip(completions, verdicts, strict=True))
        answers = tuple(
            Answer((Step(prompt.tokens, completion),), verdict, self._reward(completion, verdict))
            for completion, verdict in pairs
            if verdict.score is not None
        )
        return Group(problem, prompt, answers, tuple(verdict.note for _, verdict in pairs if verdict.score is None))

    def _reward(self, completion: Completion, verdict: Verdict) -> float:
        cut_off = self.overlong == "zero" and completion.finish == "length"
        return 0.0 if cut_off or verdict.score is None else verdict.score


def as_episodes(group: Group, split: str, seed: int | None, at: Progress, words: bool = True) -> list[Episode]:
    """The records of a group's answers, with prompt and completion if `words`; failed judging has no score.

    Dialogues keep their words always: they are few, dear and long to come by.
    """
    asked = (Turn("user", group.problem.prompt, len(group.prompt.tokens)),) if words else ()
    episodes = [_episode(group.problem, asked, answer, split, seed, at) for answer in group.answers]
    for note in group.errors:
        row = Episode(
            group.problem.task, split, seed, at, None, 0, "error", turns=asked, error=note, item=group.problem.id
        )
        episodes.append(row)
    return episodes


def _episode(
    problem: Problem, asked: tuple[Turn, ...], answer: Answer, split: str, seed: int | None, at: Progress
) -> Episode:
    completion, length = answer.completion, answer.length
    said = (*asked, Turn("assistant", completion.text, length, reward=answer.reward)) if asked else ()
    return Episode(
        env=problem.task,
        split=split,
        seed=seed,
        at=at,
        score=answer.verdict.score if answer.turns else answer.reward,
        length=length,
        ended="truncated" if answer.cut or completion.finish == "length" else "terminated",
        parts=_parts(answer),
        turns=answer.turns or said,
        item=problem.id,
        version=answer.version,
        took=answer.took,
    )


def _parts(answer: Answer) -> dict[str, float]:
    """The verdict's numbers, and of a dialogue what was learnt from."""
    return {**answer.verdict.parts, "reward": answer.reward} if answer.turns else dict(answer.verdict.parts)
