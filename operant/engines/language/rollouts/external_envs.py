"""External environments: they drive their rollouts themselves and call the policy at an endpoint.

The thread that runs a round is the one that has the generator: while rollouts run in the environments' processes, it
answers their calls, all that came together in one batch.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from operant.engines.language.generation.generator import Prompt, Sampling, Step
from operant.engines.language.policy.chat_template import encode
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.types import Answer, Group, PromptPlace
from operant.engines.language.serving.policy_endpoint import MODEL, Call, GroupCalls, PolicyEndpoint
from operant.envs.text.task import Problem
from operant.envs.verifiers.task import Begun, Rollout, VerifiersTask
from operant.errors import OperantError, RunError
from operant.run.episode import Turn
from operant.spec.settings.language import DialogueSpec


@dataclass(frozen=True)
class RunningGroup:
    """One group under way: the `place`-th of its round."""

    place: int
    problem: Problem
    begun: Begun
    calls: GroupCalls
    since: float = field(default_factory=time.monotonic)


class ExternalEnvRollouts:
    """Rolls out problems of verifiers environments with the generator of `worker` (final).

    What is learnt from is drawn as the round says, whatever an environment asks for: another temperature would make its
    log-probabilities those of another policy.
    """

    def __init__(self, worker: RolloutWorker, tasks: Mapping[str, VerifiersTask], settings: DialogueSpec) -> None:
        self.worker = worker
        self.tasks = tasks
        self.settings = settings
        self.policy = replace(worker.policy, tokenizer=copy.deepcopy(worker.policy.tokenizer))

    def rollout(
        self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[PromptPlace] = ()
    ) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem, run and scored by their environments.

        They live in another program, so that one that was interrupted begins anew.
        """
        del places
        waiting, running, groups = deque(enumerate(problems)), dict[int, RunningGroup](), dict[int, Group]()
        worker, words = self.worker, f"rolling out {len(problems)} problems in external environments"
        with (
            worker.heartbeat.busy(words),
            worker.span("external environments", problems=len(problems)),
            PolicyEndpoint(self.policy, worker.template) as endpoint,
        ):
            try:
                while waiting or running:
                    while waiting and (not running or (len(running) + 1) * sampling.n <= self.settings.concurrency):
                        group = self._start_group(*waiting.popleft(), sampling, endpoint)
                        running[group.place] = group
                    self._answer(endpoint.calls(len(running) * sampling.n), sampling)
                    worker.heartbeat.beat()
                    for group in [group for group in running.values() if _is_over(group, sampling)]:
                        groups[group.place] = self._group(running.pop(group.place), sampling)
            finally:
                for group in running.values():
                    group.begun.drop()
        return [groups[place] for place in range(len(problems))]

    def _start_group(self, place: int, problem: Problem, sampling: Sampling, endpoint: PolicyEndpoint) -> RunningGroup:
        """Begin a group at an address of its own."""
        most = self.worker.max_tokens or problem.max_tokens
        wishes = {"temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": most}
        url = endpoint.open_group(place, place * sampling.n, most)
        begun = self.tasks[problem.task].begin(problem, sampling.n, url, MODEL, wishes)
        return RunningGroup(place, problem, begun, endpoint.groups[place])

    def _answer(self, calls: Sequence[Call], sampling: Sampling) -> None:
        """Write the completions of all calls that wait."""
        if not calls:
            return
        worker, begun = self.worker, time.perf_counter()
        try:
            with worker.span("generate", turns=len(calls)):
                written = worker.generator.generate(
                    [call.prompt for call in calls], replace(sampling, n=1, seconds=None)
                )
        except BaseException as fault:
            told = fault if isinstance(fault, Exception) else RunError("the round was ended")
            for call in calls:
                call.answer.set_exception(told)
            raise
        for call, row in zip(calls, written, strict=True):
            call.answer.set_result(row[0])
        worker.timing.seconds["generate"] += time.perf_counter() - begun
        worker.timing.tokens += sum(len(row[0].tokens) for row in written)

    def _group(self, group: RunningGroup, sampling: Sampling) -> Group:
        """What a group came to; rollouts that ended in an error are left out, and counted."""
        rollouts = sorted(_rollouts(group, sampling), key=lambda each: group.calls.number(each.session))
        pairs = [(each, group.calls.steps(each.session)) for each in rollouts]
        first = next((step.prompt for _, steps in pairs for step in steps), ())
        prompt = Prompt(first or encode(group.problem.prompt, self.policy), group.calls.max_tokens)
        answers = tuple(
            self._as_answer(each, steps, time.monotonic() - group.since)
            for each, steps in pairs
            if each.verdict.score is not None and steps
        )
        return Group(group.problem, prompt, answers, tuple(note for pair in pairs if (note := _trouble(*pair))))

    def _as_answer(self, rollout: Rollout, steps: tuple[Step, ...], took: float) -> Answer:
        score = rollout.verdict.score
        assert score is not None, "an invalid verdict is no reward"
        too_long = self.worker.overlong == "zero" and steps[-1].completion.finish == "length"
        return Answer(
            steps=steps,
            verdict=rollout.verdict,
            reward=0.0 if too_long else score,
            turns=_turns(rollout, steps, self.settings.keep_ids),
            interleaved=self.settings.strategy == "interleaved",
            cut=rollout.truncated,
            took=round(took, 4),
        )


def _is_over(group: RunningGroup, sampling: Sampling) -> bool:
    """Whether a group has ended, or has had its time."""
    late = sampling.seconds is not None and time.monotonic() - group.since > sampling.seconds
    return group.begun.done or late


def _rollouts(group: RunningGroup, sampling: Sampling) -> list[Rollout]:
    """What the environment tells of a group; where it does not, as many errors."""
    if not group.begun.done:
        group.begun.drop()
        return [Rollout("", None, error=f"no rollout within {sampling.seconds or 0:g} s")] * sampling.n
    try:
        return group.begun.rollouts()
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
