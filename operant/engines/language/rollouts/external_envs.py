"""Rounds with guests: environments that drive their rollouts themselves and ask the policy at an address.

The thread that plays a round is the one that has the generator: while rollouts run in the guests' processes, it
answers what they ask, all that came together at once.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.policy.chat_template import encode
from operant.engines.language.rollouts.single_turn import Answer, Group, Rounds, Step
from operant.engines.language.serving.policy_endpoint import MODEL, Call, GroupCalls, PolicyEndpoint
from operant.envs.text.task import Problem
from operant.envs.verifiers.task import Begun, Rollout, VerifiersTask
from operant.errors import OperantError, RunError
from operant.run.episode import Turn
from operant.spec.settings.language import DialogueSpec


@dataclass(frozen=True)
class Visit:
    """One group under way: the `place`-th of its round."""

    place: int
    problem: Problem
    begun: Begun
    calls: GroupCalls
    since: float = field(default_factory=time.monotonic)


class Guests:
    """Plays problems of verifiers environments with the generator of `rounds` (final).

    What is learnt from is drawn as the round says, whatever a guest asks for: another temperature would make its
    log-probabilities those of another policy.
    """

    def __init__(self, rounds: Rounds, tasks: Mapping[str, VerifiersTask], settings: DialogueSpec) -> None:
        self.rounds = rounds
        self.tasks = tasks
        self.settings = settings
        self.policy = replace(rounds.policy, tokenizer=copy.deepcopy(rounds.policy.tokenizer))

    def play(self, problems: Sequence[Problem], sampling: Sampling) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem, played and judged by their environments."""
        waiting, visits, groups = deque(enumerate(problems)), dict[int, Visit](), dict[int, Group]()
        rounds, words = self.rounds, f"playing {len(problems)} problems with guests"
        with (
            rounds.pulse.busy(words),
            rounds.span("guests", problems=len(problems)),
            PolicyEndpoint(self.policy, rounds.template) as endpoint,
        ):
            try:
                while waiting or visits:
                    while waiting and (not visits or (len(visits) + 1) * sampling.n <= self.settings.concurrency):
                        visit = self._receive(*waiting.popleft(), sampling, endpoint)
                        visits[visit.place] = visit
                    self._answer(endpoint.calls(len(visits) * sampling.n), sampling)
                    rounds.pulse.beat()
                    for visit in [visit for visit in visits.values() if _is_over(visit, sampling)]:
                        groups[visit.place] = self._group(visits.pop(visit.place), sampling)
            finally:
                for visit in visits.values():
                    visit.begun.drop()
        return [groups[place] for place in range(len(problems))]

    def _receive(self, place: int, problem: Problem, sampling: Sampling, endpoint: PolicyEndpoint) -> Visit:
        """Begin a group at an address of its own."""
        most = self.rounds.max_tokens or problem.max_tokens
        wishes = {"temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": most}
        url = endpoint.open_group(place, place * sampling.n, most)
        begun = self.tasks[problem.task].begin(problem, sampling.n, url, MODEL, wishes)
        return Visit(place, problem, begun, endpoint.groups[place])

    def _answer(self, calls: Sequence[Call], sampling: Sampling) -> None:
        """Write the completions of all calls that wait."""
        if not calls:
            return
        rounds, begun = self.rounds, time.perf_counter()
        try:
            with rounds.span("generate", turns=len(calls)):
                written = rounds.generator.generate(
                    [call.prompt for call in calls], replace(sampling, n=1, seconds=None)
                )
        except BaseException as fault:
            told = fault if isinstance(fault, Exception) else RunError("the round was ended")
            for call in calls:
                call.answer.set_exception(told)
            raise
        for call, row in zip(calls, written, strict=True):
            call.answer.set_result(row[0])
        rounds.timing.seconds["generate"] += time.perf_counter() - begun
        rounds.timing.tokens += sum(len(row[0].tokens) for row in written)

    def _group(self, visit: Visit, sampling: Sampling) -> Group:
        """What a group came to; rollouts that ended in an error are left out, and counted."""
        rollouts = sorted(_rollouts(visit, sampling), key=lambda each: visit.calls.number(each.session))
        pairs = [(each, visit.calls.steps(each.session)) for each in rollouts]
        first = next((step.prompt for _, steps in pairs for step in steps), ())
        prompt = Prompt(first or encode(visit.problem.prompt, self.policy), visit.calls.max_tokens)
        answers = tuple(
            self._as_answer(each, steps, time.monotonic() - visit.since)
            for each, steps in pairs
            if each.verdict.score is not None and steps
        )
        return Group(visit.problem, prompt, answers, tuple(note for pair in pairs if (note := _trouble(*pair))))

    def _as_answer(self, rollout: Rollout, steps: tuple[Step, ...], took: float) -> Answer:
        score = rollout.verdict.score or 0.0
        too_long = self.rounds.overlong == "zero" and steps[-1].completion.finish == "length"
        return Answer(
            steps=steps,
            verdict=rollout.verdict,
            reward=0.0 if too_long else score,
            turns=_turns(rollout, steps, self.settings.keep_ids),
            interleaved=self.settings.strategy == "interleaved",
            cut=rollout.truncated,
            took=round(took, 4),
        )


def _is_over(visit: Visit, sampling: Sampling) -> bool:
    """Whether a group has ended, or has had its time."""
    late = sampling.seconds is not None and time.monotonic() - visit.since > sampling.seconds
    return visit.begun.done or late


def _rollouts(visit: Visit, sampling: Sampling) -> list[Rollout]:
    """What the environment tells of a group; where it does not, as many errors."""
    if not visit.begun.done:
        visit.begun.drop()
        return [Rollout("", None, error=f"no rollout within {sampling.seconds or 0:g} s")] * sampling.n
    try:
        return visit.begun.rollouts()
    except OperantError as fault:
        return [Rollout("", None, error=fault.cause)] * sampling.n


def _trouble(rollout: Rollout, steps: Sequence[Step]) -> str | None:
    """Why there is nothing to learn from a rollout."""
    if rollout.verdict.score is None:
        return rollout.verdict.note
    return None if steps else "the environment gave a reward without asking the policy"


def _turns(rollout: Rollout, steps: Sequence[Step], keep_ids: bool) -> tuple[Turn, ...]:
    """The words of a rollout; the policy's with the tokens that it wrote."""
    written, turns = iter(steps), []
    for message in rollout.messages:
        step = next(written, None) if message.role == "assistant" else None
        tokens = step.completion.tokens if step is not None else ()
        turns.append(Turn(message.role, message.text, len(tokens), ids=tokens if keep_ids else ()))
    return tuple(turns)
