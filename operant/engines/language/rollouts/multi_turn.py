"""Rollouts of many turns: worlds answer side by side, and the policy speaks in all of them with one call.

All rollouts under way take their turns together, so that what is generated depends on seeds alone and a resumed run
plays the same rollouts. A world that fails costs its rollout, which is counted as an error and never as a score.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.transcript import Transcript
from operant.engines.language.rollouts.env_threads import Seat, Seats, outcomes
from operant.engines.language.rollouts.single_turn import Answer, Group, Rounds, Step
from operant.envs.text.dialogue import DialogueTask, Message, Response
from operant.envs.text.task import Problem, Task, Verdict
from operant.envs.verifiers.task import VerifiersTask
from operant.run.episode import Turn
from operant.spec.settings.language import DialogueSpec

LEAST_TOKENS = 4
"""A turn with room for fewer tokens is not taken: the context is full."""


@dataclass(frozen=True)
class Origin:
    """Where a rollout begins that goes on from another's end: its world, and the words that led there."""

    snapshot: bytes
    transcript: Transcript


@dataclass
class Rollout:
    """One rollout: the `index`-th of its group; `number` tells it apart from all others of a call.

    It may go on from an `origin`; with `pauses` it ends at the first turn that shows a score, and keeps a snapshot of
    the world as it is then.
    """

    problem: Problem
    task: DialogueTask
    group: int
    index: int
    number: int
    most_turns: int
    origin: Origin | None = None
    pauses: bool = False
    seat: Seat | None = None
    transcript: Transcript | None = None
    snapshot: bytes | None = None
    steps: list[Step] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    begun: float = 0.0
    took: float = 0.0
    done: bool = False
    cut: bool = False
    verdict: Verdict | None = None


def one_turn_tasks(tasks: Sequence[Task]) -> list[Task]:
    """The tasks whose answers verifiers judge."""
    return [task for task in tasks if not isinstance(task, DialogueTask | VerifiersTask)]


def engage(rounds: Rounds, tasks: Sequence[Task], settings: DialogueSpec) -> None:
    """Let the dialogues among the tasks be played on a stage, and environments that play themselves be received."""
    from operant.engines.language.rollouts.external_envs import Guests

    dialogues = {task.name: task for task in tasks if isinstance(task, DialogueTask)}
    if dialogues:
        rounds.players |= dict.fromkeys(dialogues, Stage(rounds, dialogues, settings))
    guests = {task.name: task for task in tasks if isinstance(task, VerifiersTask)}
    if guests:
        rounds.players |= dict.fromkeys(guests, Guests(rounds, guests, settings))


class Stage:
    """Plays dialogues with the generator of `rounds` (final)."""

    def __init__(self, rounds: Rounds, tasks: Mapping[str, DialogueTask], settings: DialogueSpec) -> None:
        self.rounds = rounds
        self.tasks = tasks
        self.settings = settings
        self.pulse = rounds.witness.watch.pulse(f"worlds of {rounds.lane}")

    def play(self, problems: Sequence[Problem], sampling: Sampling) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem."""
        rollouts = [
            Rollout(problem, task, group, index, group * sampling.n + index, self.settings.turns or task.turns)
            for group, (problem, task) in enumerate((each, self.tasks[each.task]) for each in problems)
            for index in range(sampling.n)
        ]
        self.run(rollouts, sampling)
        return [self._group(problem, rollouts, number) for number, problem in enumerate(problems)]

    def run(self, rollouts: Sequence[Rollout], sampling: Sampling) -> None:
        """Take rollouts to their ends; afterwards each has a verdict."""
        waiting, under_way = deque(rollouts), list[Rollout]()
        with Seats(min(self.settings.concurrency, len(rollouts))) as seats:
            while waiting or under_way:
                fresh = [waiting.popleft() for _ in range(min(len(waiting), seats.free))]
                self._begin(fresh, seats, sampling)
                under_way += fresh
                self._turn([each for each in under_way if each.verdict is None], sampling)
                self._end([each for each in under_way if each.done and each.verdict is None])
                for each in (each for each in under_way if each.verdict is not None):
                    self._leave(each, seats)
                under_way = [each for each in under_way if each.verdict is None]

    def _begin(self, fresh: Sequence[Rollout], seats: Seats, sampling: Sampling) -> None:
        """Open the worlds of rollouts, and read their first words."""
        for each in fresh:
            each.seat, each.begun = seats.take(), time.perf_counter()
        futures = [
            _seated(each).begin(
                each.task, each.problem, sampling.seed + each.index, each.origin and each.origin.snapshot
            )
            for each in fresh
        ]
        for each, opening in zip(fresh, self._heard(futures, "opening"), strict=True):
            if isinstance(opening, Verdict):
                each.verdict = opening
            elif each.origin is not None:
                each.transcript = copy(each.origin.transcript)
            else:
                anew = self.settings.strategy == "branching"
                each.transcript = Transcript(self.rounds.policy, self.rounds.template, opening, anew)
                each.turns = _told(opening, len(each.transcript.tokens))

    def _turn(self, speakers: Sequence[Rollout], sampling: Sampling) -> None:
        """Let every policy speak once, and its world answer."""
        prompts = {each.number: self._prompt(each) for each in speakers}
        for each in speakers:
            each.done = each.cut = prompts[each.number] is None
        speaking = [(each, prompt) for each in speakers if (prompt := prompts[each.number]) is not None]
        completions = self._written([prompt for _, prompt in speaking], sampling)
        futures = []
        for (each, prompt), completion in zip(speaking, completions, strict=True):
            each.steps.append(Step(prompt.tokens, completion))
            futures.append(_seated(each).hear(completion.text, completion.finish == "length"))
        for (each, _), response in zip(speaking, self._heard(futures, "answering"), strict=True):
            if isinstance(response, Verdict):
                each.verdict = response
            else:
                self._record(each, response)

    def _prompt(self, rollout: Rollout) -> Prompt | None:
        """What a policy is asked with; None where its context is full."""
        assert rollout.transcript is not None
        tokens, problem = rollout.transcript.tokens, rollout.problem
        most = self.rounds.max_tokens or problem.max_tokens
        room = self.rounds.policy.context - len(tokens)
        if room < min(most, LEAST_TOKENS):
            return None
        return Prompt(tokens, min(most, room), problem.stop, rollout.number + 1)

    def _written(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Completion]:
        rounds, begun = self.rounds, time.perf_counter()
        if not prompts:
            return []
        with rounds.pulse.busy(f"writing {len(prompts)} turns"), rounds.span("generate", turns=len(prompts)):
            written = [row[0] for row in rounds.generator.generate(prompts, replace(sampling, n=1))]
        rounds.timing.seconds["generate"] += time.perf_counter() - begun
        rounds.timing.tokens += sum(len(each.tokens) for each in written)
        return written

    def _heard(self, futures: Sequence, what: str) -> list:
        """What worlds said."""
        rounds, begun = self.rounds, time.perf_counter()
        words, lane = f"waiting for {len(futures)} worlds", f"worlds of {rounds.lane}"
        with rounds.pulse.busy(words, lane), self.pulse.busy(what), rounds.span("world", calls=len(futures)):
            found = outcomes(futures, self.pulse.beat)
        rounds.timing.seconds["world"] += time.perf_counter() - begun
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
        rollout.turns += _told(response.messages, max(len(rollout.transcript.tokens) - before, 0))

    def _end(self, ended: Sequence[Rollout]) -> None:
        """Judge rollouts."""
        pausing = [each for each in ended if each.pauses and each.cut and each.steps]
        kept = self._heard([_seated(each).keep() for each in pausing], "keeping")
        for each, snapshot in zip(pausing, kept, strict=True):
            each.snapshot = None if isinstance(snapshot, Verdict) else snapshot
        futures = [_seated(each).judge() for each in ended]
        for each, verdict in zip(ended, self._heard(futures, "judging"), strict=True):
            each.verdict = verdict
            each.took = time.perf_counter() - each.begun

    def _leave(self, rollout: Rollout, seats: Seats) -> None:
        seat = _seated(rollout)
        if seat.dialogue is not None:  # it failed before it was judged, which would have closed it
            outcomes([seat.give_up()], self.pulse.beat)
        seats.leave(seat)
        rollout.seat = None

    def _group(self, problem: Problem, rollouts: Sequence[Rollout], number: int) -> Group:
        mine = [each for each in rollouts if each.group == number]
        judged = [(each, each.verdict) for each in mine if each.verdict is not None]
        answers = tuple(self._answer(each, verdict) for each, verdict in judged if verdict.score is not None)
        errors = tuple(verdict.note for _, verdict in judged if verdict.score is None)
        first = next((each.steps[0].prompt for each in mine if each.steps), ())
        return Group(problem, Prompt(first, problem.max_tokens, problem.stop), answers, errors)

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
    """What is learnt from: the reward by the chosen scheme, or the score where the world has no such scheme."""
    assert verdict.score is not None
    return verdict.parts.get(settings.reward, verdict.score)


def _told(messages: Sequence[Message], tokens: int) -> list[Turn]:
    """The world's words as turns, the last of which carries the tokens of them all."""
    last = len(messages) - 1
    return [
        Turn(each.role, each.text, tokens if place == last else 0, tool=each.tool)
        for place, each in enumerate(messages)
    ]


def _seated(rollout: Rollout) -> Seat:
    assert rollout.seat is not None, "a rollout under way has a seat"
    return rollout.seat
