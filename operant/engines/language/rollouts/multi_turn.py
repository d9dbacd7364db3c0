"""Multi-turn rollouts: environments step side by side, and the policy answers all of them with one call.

All rollouts under way take their turns together, so that what is generated depends on seeds alone and a resumed run
makes the same rollouts. An environment that fails costs its rollout, which is counted as an error and never as a score.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

from operant.engines.language.generation.generator import Completion, Prompt, Sampling, Step
from operant.engines.language.generation.transcript import new_transcript
from operant.engines.language.rollouts.env_threads import EnvThread, EnvThreadPool, outcomes
from operant.engines.language.rollouts.rollout import Rollout
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.types import Answer, Group, PromptPlace, invalid_of
from operant.envs.text.dialogue import DialogueTask, Message, Response
from operant.envs.text.task import Problem, Task, Verdict, failed
from operant.envs.verifiers.task import VerifiersTask
from operant.errors import UsageError
from operant.run.episode import Turn
from operant.spec.settings.language import DialogueSpec

LEAST_TOKENS = 4
"""A turn with room for fewer tokens is not taken: the context is full."""


def single_turn_tasks(tasks: Sequence[Task]) -> list[Task]:
    """The tasks whose answers verifiers score."""
    return [task for task in tasks if not isinstance(task, DialogueTask | VerifiersTask)]


def attach_drivers(worker: RolloutWorker, tasks: Sequence[Task], settings: DialogueSpec) -> None:
    """Give dialogues among the tasks multi-turn rollouts, and environments that drive themselves an endpoint."""
    dialogues = {task.name: task for task in tasks if isinstance(task, DialogueTask)}
    if dialogues:
        from operant.engines.language.rollouts.executors import attach_executors

        attach_executors(tasks, worker.policy)
        worker.drivers |= dict.fromkeys(dialogues, MultiTurnRollouts(worker, dialogues, settings))
    external = {task.name: task for task in tasks if isinstance(task, VerifiersTask)}
    if external:
        # Only here: it serves the policy, which takes a web framework.
        from operant.engines.language.rollouts.external_envs import ExternalEnvRollouts

        worker.drivers |= dict.fromkeys(external, ExternalEnvRollouts(worker, external, settings))


class MultiTurnRollouts:
    """Rolls out dialogues with the generator of `worker` (final)."""

    def __init__(self, worker: RolloutWorker, tasks: Mapping[str, DialogueTask], settings: DialogueSpec) -> None:
        self.worker = worker
        self.tasks = tasks
        self.settings = settings
        self.heartbeat = worker.telemetry.watchdog.heartbeat(f"environments of {worker.lane}")

    def rollout(
        self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[PromptPlace] = ()
    ) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem; those of training go on from their last finished turn."""
        rollouts = [
            self._new_rollout(problem, group, index, sampling.n, places[group] if places else None)
            for group, problem in enumerate(problems)
            for index in range(sampling.n)
        ]
        self.run([each for each in rollouts if each.verdict is None], sampling)
        return [self._group(problem, rollouts, number) for number, problem in enumerate(problems)]

    def _new_rollout(self, problem: Problem, group: int, index: int, size: int, place: PromptPlace | None) -> Rollout:
        """A rollout at its opening, or as it was when an earlier attempt was interrupted."""
        task, number = self.tasks[problem.task], (place.number if place else group) * size + index
        rollout = Rollout(problem, task, group, index, number, self.settings.turns or task.turns, place=place)
        store = self.worker.store
        row = store.read_rollout(place.place, index) if store and place else None
        if row is not None and place is not None:
            rollout.restore(row)
            turns = len(rollout.steps)
            self.worker.telemetry.accounting.note(place.place, "continued", rollout=index, turns=turns)
        return rollout

    def run(self, rollouts: Sequence[Rollout], sampling: Sampling) -> None:
        """Take rollouts to their ends; afterwards each has a verdict."""
        waiting, under_way = deque(rollouts), list[Rollout]()
        if not rollouts:
            return
        with EnvThreadPool(min(self.settings.concurrency, len(rollouts))) as threads:
            while waiting or under_way:
                fresh = [waiting.popleft() for _ in range(min(len(waiting), threads.free))]
                self._begin(fresh, threads, sampling)
                under_way += fresh
                self._turn([each for each in under_way if each.verdict is None and not each.done], sampling)
                self._end([each for each in under_way if each.done and each.verdict is None])
                for each in (each for each in under_way if each.verdict is not None):
                    self._release(each, threads)
                under_way = [each for each in under_way if each.verdict is None]

    def _begin(self, fresh: Sequence[Rollout], threads: EnvThreadPool, sampling: Sampling) -> None:
        """Open the environments of rollouts, and read their first messages, or bring them to where they were."""
        for each in fresh:
            each.thread, each.begun = threads.acquire(), time.perf_counter()
        futures = [
            _thread_of(each).begin(
                each.task, each.problem, sampling.seed + each.index, each.origin and each.origin.snapshot, each.kept
            )
            for each in fresh
        ]
        for each, opening in zip(fresh, self._wait_for(futures, "opening"), strict=True):
            if isinstance(opening, Verdict):
                each.verdict = opening
            elif each.origin is not None:
                each.transcript = copy(each.origin.transcript)
            else:
                self._open_transcript(each, opening)

    def _open_transcript(self, rollout: Rollout, opening: tuple[Message, ...] | None) -> None:
        """The transcript of a rollout that begins with these messages; without any it goes on where it was."""
        if opening is None:
            rollout.begun -= rollout.took
        else:
            rollout.forget()
            rollout.heard.append(opening)
        rollout.transcript = new_transcript(self.worker.policy, self.worker.template, rollout.heard[0], self.settings)
        for step, messages in zip(rollout.steps, rollout.heard[1:], strict=True):
            rollout.transcript.add(step.completion, messages)
        if opening is not None:
            rollout.turns = _env_turns(opening, len(rollout.transcript.tokens))
            self._refuse_without_room(rollout)

    def _refuse_without_room(self, rollout: Rollout) -> None:
        """A dialogue in which nothing can be said is no answer of the policy's, good or bad."""
        if self._prompt(rollout) is None:
            context, opening = self.worker.policy.context, sum(turn.tokens for turn in rollout.turns)
            raise UsageError(
                f"{rollout.problem.id} opens with {opening} tokens, which leave no room for an answer in the model's "
                f"context of {context}",
                remedy=f"a model of a longer context; of tiny -s agent.model.tiny.context={2 * opening}",
            )

    def _turn(self, speakers: Sequence[Rollout], sampling: Sampling) -> None:
        """One turn: the policy writes, and the environment steps."""
        prompts = {each.number: self._prompt(each) for each in speakers}
        for each in speakers:
            each.done = each.cut = prompts[each.number] is None
        speaking = [(each, prompt) for each in speakers if (prompt := prompts[each.number]) is not None]
        completions = self._written([prompt for _, prompt in speaking], sampling)
        futures = []
        for (each, prompt), completion in zip(speaking, completions, strict=True):
            each.steps.append(Step(prompt.tokens, completion))
            futures.append(_thread_of(each).step(completion.text, completion.finish == "length"))
        for (each, _), response in zip(speaking, self._wait_for(futures, "answering"), strict=True):
            if isinstance(response, Verdict):
                each.verdict = response
            else:
                self._record(each, response)
        self._keep([each for each, _ in speaking])

    def _keep(self, rollouts: Sequence[Rollout]) -> None:
        """Store rollouts of training as they are after a turn, or with their verdicts, and note their turns."""
        store, placed = self.worker.store, [each for each in rollouts if each.place is not None]
        if store is None:
            return
        open_ones = [each for each in placed if each.verdict is None]
        kept = self._wait_for([_thread_of(each).checkpoint() for each in open_ones], "keeping")
        states = {each.number: state for each, state in zip(open_ones, kept, strict=True)}
        for each in placed:
            state = states.get(each.number)
            if each.place is not None and not isinstance(state, Verdict):
                store.write_rollout(each.place.place, each.index, each.as_row(state))
                if each.verdict is None:
                    facts = {"rollout": each.index, "turn": len(each.steps), "by": self.worker.lane}
                    tokens = len(each.steps[-1].completion.tokens)
                    self.worker.telemetry.accounting.note(each.place.place, "turn", **facts, tokens=tokens)

    def _prompt(self, rollout: Rollout) -> Prompt | None:
        """What a policy is asked with; None where its context is full."""
        assert rollout.transcript is not None
        tokens, problem = rollout.transcript.tokens, rollout.problem
        most = self.worker.max_tokens or problem.max_tokens
        room = self.worker.policy.context - len(tokens)
        if room < min(most, LEAST_TOKENS):
            return None
        return Prompt(tokens, min(most, room), problem.stop, rollout.number + 1)

    def _written(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Completion]:
        worker, begun = self.worker, time.perf_counter()
        if not prompts:
            return []
        with worker.heartbeat.busy(f"writing {len(prompts)} turns"), worker.span("generate", turns=len(prompts)):
            written = [row[0] for row in worker.generator.generate(prompts, replace(sampling, n=1))]
        worker.timing.seconds["generate"] += time.perf_counter() - begun
        worker.timing.tokens += sum(len(each.tokens) for each in written)
        return written

    def _wait_for(self, futures: Sequence, what: str) -> list:
        """The results of environments."""
        worker, begun = self.worker, time.perf_counter()
        words, lane = f"waiting for {len(futures)} environments", f"environments of {worker.lane}"
        with (
            worker.heartbeat.busy(words, lane),
            self.heartbeat.busy(what),
            worker.span("environment", calls=len(futures)),
        ):
            found = outcomes(futures, self.heartbeat.beat)
        worker.timing.seconds["world"] += time.perf_counter() - begun
        return found

    def _record(self, rollout: Rollout, response: Response) -> None:
        """Write a turn down, and see whether it was the last."""
        completion = rollout.steps[-1].completion
        now = time.perf_counter()
        rollout.turns.append(
            Turn(
                "assistant",
                completion.text,
                len(completion.tokens),
                tool=response.tool,
                reward=response.reward,
                score=response.score,
                fault=response.fault,
                seconds=round(now - rollout.begun - rollout.took, 4),
                ids=completion.tokens if self.settings.keep_ids else (),
            )
        )
        rollout.took = now - rollout.begun
        spent = len(rollout.steps) >= rollout.most_turns
        pause = rollout.pauses and response.score is not None
        rollout.done, rollout.cut = response.done or spent or pause, not response.done
        assert rollout.transcript is not None
        before = len(rollout.transcript.tokens) + len(completion.tokens)
        rollout.transcript.add(completion, response.messages)
        rollout.heard.append(response.messages)
        rollout.turns += _env_turns(response.messages, max(len(rollout.transcript.tokens) - before, 0))

    def _end(self, ended: Sequence[Rollout]) -> None:
        """Score rollouts."""
        pausing = [each for each in ended if each.pauses and each.cut and each.steps]
        kept = self._wait_for([_thread_of(each).snapshot() for each in pausing], "keeping")
        for each, snapshot in zip(pausing, kept, strict=True):
            each.snapshot = None if isinstance(snapshot, Verdict) else snapshot
        futures = [_thread_of(each).score() for each in ended]
        for each, verdict in zip(ended, self._wait_for(futures, "scoring"), strict=True):
            each.verdict = verdict
            each.took = time.perf_counter() - each.begun
        self._keep(ended)

    def _release(self, rollout: Rollout, threads: EnvThreadPool) -> None:
        thread = _thread_of(rollout)
        if thread.dialogue is not None:  # it failed before it was scored, which would have closed it
            outcomes([thread.close()], self.heartbeat.beat)
        threads.release(thread)
        rollout.thread = None

    def _group(self, problem: Problem, rollouts: Sequence[Rollout], number: int) -> Group:
        mine = [each for each in rollouts if each.group == number]
        scored = [(each, self._checked(each.verdict)) for each in mine if each.verdict is not None]
        answers = tuple(self._answer(each, verdict) for each, verdict in scored if verdict.score is not None)
        first = next((each.steps[0].prompt for each in mine if each.steps), ())
        prompt = Prompt(first, problem.max_tokens, problem.stop)
        errors, reasons = invalid_of(verdict for _, verdict in scored)
        return Group(problem, prompt, answers, errors, reasons=reasons)

    def _checked(self, verdict: Verdict) -> Verdict:
        """The verdict; invalid where the environment's reward is no number."""
        if verdict.score is None or math.isfinite(reward := reward_of(verdict, self.settings)):
            return verdict
        return failed(f"the environment gave the reward {reward}")

    def _answer(self, rollout: Rollout, verdict: Verdict) -> Answer:
        return Answer(
            steps=tuple(rollout.steps),
            verdict=verdict,
            reward=reward_of(verdict, self.settings),
            turns=tuple(rollout.turns),
            interleaved=self.settings.strategy == "interleaved",
            cut=rollout.cut,
            took=round(rollout.took, 4),
        )


def reward_of(verdict: Verdict, settings: DialogueSpec) -> float:
    """What is learnt from: the reward by the chosen scheme, or the score where the environment has no such scheme."""
    assert verdict.score is not None
    return verdict.parts.get(settings.reward, verdict.score)


def _env_turns(messages: Sequence[Message], tokens: int) -> list[Turn]:
    """The environment's messages as turns, the last of which carries the tokens of them all."""
    last = len(messages) - 1
    return [
        Turn(each.role, each.text, tokens if place == last else 0, tool=each.tool)
        for place, each in enumerate(messages)
    ]


def _thread_of(rollout: Rollout) -> EnvThread:
    assert rollout.thread is not None, "a rollout under way has a thread"
    return rollout.thread
