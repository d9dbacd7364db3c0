"""Rounds with guests: environments that drive their rollouts themselves and ask the policy at an address.

The thread that plays a round is the one that has the generator: while rollouts run in the guests' processes, it
answers what they ask, all that came together at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from operant.engines.language.completion import Generator, Prompt, Sampling
from operant.engines.language.ledger import Witness
from operant.engines.language.model import Policy
from operant.engines.language.prompts import Template, encode
from operant.engines.language.reception import MODEL, Call, Reception, Room
from operant.engines.language.rollout import Answer, Group, Step, Timing
from operant.envs.text.task import Problem
from operant.envs.verifiers.task import Begun, Rollout, VerifiersTask
from operant.errors import OperantError
from operant.run.episode import Turn


@dataclass
class Visit:
    """One group under way: the `place`-th of its round, at the address with this `number`."""

    place: int
    number: int
    problem: Problem
    begun: Begun
    room: Room
    since: float = field(default_factory=time.monotonic)


class Guests:
    """Plays problems of verifiers environments (final). Close it.

    At most `at_once` rollouts are under way. What is learnt from is drawn as the round says, whatever a guest asks
    for: another temperature would make its log-probabilities those of another policy.
    """

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        tasks: Mapping[str, VerifiersTask],
        template: Template,
        max_tokens: int | None,
        *,
        at_once: int = 8,
        interleaved: bool = True,
        overlong: str = "keep",
        witness: Witness | None = None,
        lane: str = "generator",
    ) -> None:
        self.policy = policy
        self.generator = generator
        self.tasks = tasks
        self.at_once = at_once
        self.interleaved = interleaved
        self.overlong = overlong
        self.timing = Timing()
        self.witness = witness or Witness()
        self.lane = lane
        self.pulse = self.witness.watch.pulse(lane)
        self.reception = Reception(policy, template, max_tokens)
        self._numbers = 0

    def play(self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[int] = ()) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem, played and judged by their environments."""
        waiting, visits = deque(enumerate(problems)), dict[int, Visit]()
        groups: dict[int, Group] = {}
        words = f"playing {len(problems)} problems of guests"
        with self.pulse.busy(words), self.witness.trace.span("guests", self.lane, problems=len(problems)):
            try:
                while waiting or visits:
                    while waiting and (not visits or len(visits) * sampling.n < self.at_once):
                        visit = self._receive(*waiting.popleft(), sampling)
                        visits[visit.place] = visit
                    self._answer(self.reception.calls(len(visits) * sampling.n), sampling)
                    self.pulse.beat()
                    for place in [place for place, visit in visits.items() if self._is_over(visit, sampling)]:
                        groups[place] = self._group(visits.pop(place), sampling)
            finally:
                for visit in visits.values():
                    visit.begun.drop()
        return self._noted([groups[place] for place in range(len(problems))], places)

    def close(self) -> None:
        """Close the address; the guests' processes end with us."""
        self.reception.close()

    def _receive(self, place: int, problem: Problem, sampling: Sampling) -> Visit:
        """Begin a group at an address of its own."""
        self._numbers += 1
        wishes: dict[str, float] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        if self.reception.max_tokens is not None:
            wishes["max_tokens"] = self.reception.max_tokens
        room, url = self.reception.rooms[self._numbers], self.reception.url(self._numbers)
        begun = self.tasks[problem.task].begin(problem, sampling.n, url, MODEL, wishes)
        return Visit(place, self._numbers, problem, begun, room)

    def _answer(self, calls: Sequence[Call], sampling: Sampling) -> None:
        """Write the completions of all calls that wait."""
        if not calls:
            return
        begun = time.perf_counter()
        try:
            written = self.generator.generate([call.prompt for call in calls], replace(sampling, n=1, seconds=None))
        except BaseException as fault:
            for call in calls:
                call.answer.set_exception(fault)
            raise
        for call, row in zip(calls, written, strict=True):
            call.answer.set_result(row[0])
        self.timing.seconds["generate"] += time.perf_counter() - begun
        self.timing.tokens += sum(len(row[0].tokens) for row in written)

    def _is_over(self, visit: Visit, sampling: Sampling) -> bool:
        """Whether a group has ended, or has had its time."""
        return visit.begun.done or (sampling.seconds is not None and time.monotonic() - visit.since > sampling.seconds)

    def _group(self, visit: Visit, sampling: Sampling) -> Group:
        """What a group came to; rollouts that ended in an error are left out, and counted."""
        rollouts = self._rollouts(visit, sampling)
        del self.reception.rooms[visit.number]
        rollouts.sort(key=lambda each: visit.room.number(each.session))
        answers = [self._judged(each, visit) for each in rollouts]
        first = next((step.prompt for steps, _ in answers for step in steps), ())
        prompt = Prompt(first or encode(visit.problem.prompt, self.policy), self.reception.max_tokens or 0)
        took = time.monotonic() - visit.since
        return Group(
            visit.problem,
            prompt,
            tuple(
                self._as_answer(steps, each, took)
                for steps, each in answers
                if each.verdict.score is not None and steps
            ),
            tuple(each.verdict.note for steps, each in answers if each.verdict.score is None),
        )

    def _rollouts(self, visit: Visit, sampling: Sampling) -> list[Rollout]:
        if not visit.begun.done:
            visit.begun.drop()
            return [Rollout("", None, error=f"no rollout within {sampling.seconds or 0:g} s")] * sampling.n
        try:
            return visit.begun.rollouts()
        except OperantError as fault:
            return [Rollout("", None, error=fault.cause)] * sampling.n

    def _judged(self, rollout: Rollout, visit: Visit) -> tuple[tuple[Step, ...], Rollout]:
        """A rollout with its calls; one without any has nothing that could be learnt from, and is an error."""
        steps = visit.room.steps(rollout.session)
        if rollout.verdict.score is not None and not steps:
            return steps, replace(rollout, error="the environment gave a reward without asking the policy")
        return steps, rollout

    def _as_answer(self, steps: tuple[Step, ...], rollout: Rollout, took: float) -> Answer:
        verdict, cut_off = rollout.verdict, steps[-1].completion.finish == "length"
        reward = 0.0 if cut_off and self.overlong == "zero" else verdict.score or 0.0
        return Answer(steps, verdict, reward, _turns(rollout, steps), self.interleaved, took)

    def _noted(self, groups: list[Group], places: Sequence[int]) -> list[Group]:
        """The groups with the places of their prompts, whose course is noted."""
        if not places:
            return groups
        for place, group in zip(places, groups, strict=True):
            tokens = sum(answer.length for answer in group.answers)
            self.witness.ledger.note(place, "generated", tokens=tokens, version=group.version, by=self.lane)
            self.witness.ledger.note(place, "judged", rewards=group.rewards, errors=len(group.errors))
        return [replace(group, place=place) for place, group in zip(places, groups, strict=True)]


def _turns(rollout: Rollout, steps: Sequence[Step]) -> tuple[Turn, ...]:
    """The words of a rollout; the policy's with the tokens that it wrote."""
    written, turns = iter(steps), []
    for message in rollout.messages:
        step = next(written, None) if message.role == "assistant" else None
        turns.append(Turn(message.role, message.text, len(step.completion.tokens) if step else 0))
    return tuple(turns)
