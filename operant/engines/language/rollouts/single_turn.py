"""Single-turn rollouts: prompts are rendered, answered in groups, and scored by verifiers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from operant.engines.language.generation.generator import Completion, Generator, Prompt, Sampling, Step
from operant.engines.language.policy.chat_template import Template, as_text, encode
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.rewards import RewardScorer
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import (
    Answer,
    Group,
    PromptPlace,
    RolloutDriver,
    Timing,
    VerifierPool,
    invalid_of,
)
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.task import Problem, Verdict, failed


class RolloutWorker:
    """Answers problems with a generator and scores the answers; tasks named in `drivers` are rolled out by those.

    With `rewards` the values of reward functions are added to what the answers are worth, however they came about.

    `overlong` is what becomes of completions that were cut off by their length: scored as they are
    ("keep", and "mask", which the learner attends to), or worth nothing ("zero").
    """

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        verifiers: VerifierPool,
        template: Template,
        max_tokens: int | None,
        overlong: str,
        telemetry: Telemetry | None = None,
        lane: str = "generator",
    ) -> None:
        self.policy = policy
        self.generator = generator
        self.verifiers = verifiers
        self.template: Template = template
        self.max_tokens = max_tokens
        self.overlong = overlong
        self.timing = Timing()
        self.telemetry = telemetry or Telemetry()
        self.lane = lane
        self.verifier_lane = "verifiers" if lane == "generator" else f"verifiers of {lane}"
        self.heartbeat = self.telemetry.watchdog.heartbeat(lane)
        self.verifier_heartbeat = self.telemetry.watchdog.heartbeat(self.verifier_lane)
        self.drivers: dict[str, RolloutDriver] = {}
        self.rewards: RewardScorer | None = None
        self.store: RolloutStore | None = None

    def rollout(
        self,
        problems: Sequence[Problem],
        sampling: Sampling,
        places: Sequence[int] = (),
        first: int | None = None,
        after: int = 0,
    ) -> list[Group]:
        """A group of `sampling.n` scored answers to each problem; `places` are their positions in the sampler.

        With `first`, rollouts of many turns are numbered from that place on, so that a part of a share is drawn as in
        the whole of it. `after` says of which weights the generator is (`PromptPlace`).
        """
        for place in places:
            self.telemetry.accounting.note(place, "generating", by=self.lane)
        driven = [index for index, problem in enumerate(problems) if problem.task in self.drivers]
        if driven:
            numbers = range(len(places)) if first is None else [place - first for place in places]
            known = [PromptPlace(place, number, after) for place, number in zip(places, numbers, strict=True)]
            groups = self._by_drivers(problems, sampling, known, driven, first is None)
        else:
            groups = self._answered(problems, sampling, places)
        return self._with_places(self._rewarded(groups, sampling.seconds), places)

    def _rewarded(self, groups: list[Group], within: float | None) -> list[Group]:
        """The groups with the values of the reward functions, where there are any."""
        if self.rewards is None:
            return groups
        begun, words = time.perf_counter(), f"rewarding {sum(len(group.answers) for group in groups)} answers"
        with (
            self.heartbeat.busy("waiting for reward functions", self.verifier_lane),
            self.verifier_heartbeat.busy(words),
            self.telemetry.trace.span("reward", self.verifier_lane),
        ):
            rewarded = self.rewards.score(groups, within, self.verifier_heartbeat.beat)
        self.timing.seconds["reward"] += time.perf_counter() - begun
        return rewarded

    def _by_drivers(
        self,
        problems: Sequence[Problem],
        sampling: Sampling,
        places: Sequence[PromptPlace],
        driven: Sequence[int],
        renumber: bool,
    ) -> list[Group]:
        """Groups of problems some of which have drivers of their own, in the order of the problems.

        With `renumber` a driver's problems are numbered among themselves.
        """
        here = [index for index in range(len(problems)) if index not in set(driven)]
        found: dict[int, Group] = {}
        if here:
            own = self._answered(
                [problems[index] for index in here], sampling, [places[index].place for index in here if places]
            )
            found |= dict(zip(here, own, strict=True))
        for driver in dict.fromkeys(self.drivers[problems[index].task] for index in driven):
            theirs = [index for index in driven if self.drivers[problems[index].task] is driver]
            known = [places[index] for index in theirs if places]
            if renumber:
                known = [replace(each, number=number) for number, each in enumerate(known)]
            groups = driver.rollout([problems[index] for index in theirs], sampling, known)
            found |= dict(zip(theirs, groups, strict=True))
        for index in driven if places else ():
            group = found[index]
            tokens = sum(answer.length for answer in group.answers)
            self.telemetry.accounting.note(places[index].place, "generated", tokens=tokens, by=self.lane)
        return [found[index] for index in range(len(problems))]

    def _answered(self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[int]) -> list[Group]:
        """Groups of problems that are answered in one turn and scored by verifiers."""
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
        return self.telemetry.trace.span(name, self.lane, **facts)

    def _written(
        self, problems: Sequence[Problem], prompts: Sequence[Prompt], sampling: Sampling, places: Sequence[int]
    ) -> list[list[Completion]]:
        """Completions of every prompt."""
        words = f"writing {len(prompts)} prompts from {problems[0].id} on" if problems else "writing nothing"
        with (
            self.heartbeat.busy(words),
            self.telemetry.trace.span("generate", self.lane, prompts=len(prompts), completions=sampling.n),
        ):
            written = self.generator.generate(prompts, sampling)
        for index in getattr(self.generator, "redone", ()) if places else ():
            self.telemetry.accounting.note(places[index], "redone", by=self.lane)
        for place, row in zip(places, written, strict=False):
            tokens = sum(len(each.tokens) for each in row)
            self.telemetry.accounting.note(place, "generated", tokens=tokens, version=row[0].version, by=self.lane)
        return written

    def _verdicts(
        self, problems: Sequence[Problem], written: Sequence[Sequence[Completion]], within: float | None
    ) -> list[Verdict]:
        """A verdict on every completion, in order; one that was given up is not scored."""
        asked = [(problem, each) for problem, row in zip(problems, written, strict=True) for each in row]
        texts = [(problem, problem.prefix + each.text) for problem, each in asked if each.finish != "abort"]
        with (
            self.heartbeat.busy(f"waiting for {len(texts)} verdicts", self.verifier_lane),
            self.verifier_heartbeat.busy(f"scoring {len(texts)} answers"),
            self.telemetry.trace.span("verify", self.verifier_lane, answers=len(texts)),
        ):
            verdicts = iter(self.verifiers.verify_all(texts, within, self.verifier_heartbeat.beat))
        late = failed(f"no completion within {within or 0:g} s", "late")
        return [late if each.finish == "abort" else next(verdicts) for _, each in asked]

    def _with_places(self, groups: list[Group], places: Sequence[int]) -> list[Group]:
        """The groups with the places of their prompts, whose scoring is noted."""
        if not places:
            return groups
        for place, group in zip(places, groups, strict=True):
            self.telemetry.accounting.note(place, "graded", rewards=group.rewards, errors=len(group.errors))
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
        errors, reasons = invalid_of(verdicts)
        return Group(problem, prompt, answers, errors, reasons=reasons)

    def _reward(self, completion: Completion, verdict: Verdict) -> float:
        cut_off = self.overlong == "zero" and completion.finish == "length"
        assert verdict.score is not None, "an invalid verdict is no reward"
        return 0.0 if cut_off else verdict.score


def render(problem: Problem, policy: Policy, template: Template = "auto") -> Prompt:
    """The prompt of a problem for a policy: `auto` uses a chat template iff the model has one."""
    tokens = encode(as_text(problem, policy, template), policy)
    return Prompt(tokens=tokens, max_tokens=problem.max_tokens, stop=problem.stop)
