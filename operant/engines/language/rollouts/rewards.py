"""Reward functions beside the verifier: their weighted values become part of the reward that is learnt from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from operant.engines.language.rollouts.types import Answer, Group, VerifierPool
from operant.envs.text.rewards import RewardInput, RewardRequest, Value, takes_batches
from operant.envs.text.task import Problem
from operant.spec.settings.rewards import RewardSpec


class RewardScorer:
    """Adds the values of reward functions to the rewards of answers, of one turn or of many (final).

    An answer on which a function fails has no reward, and is left out with the reason.
    """

    def __init__(self, functions: Sequence[RewardSpec], verifier_weight: float, pool: VerifierPool) -> None:
        self.functions = functions
        self.takes_batches = [takes_batches(each) for each in functions]
        self.verifier_weight = verifier_weight
        self.pool = pool

    def score(
        self, groups: Sequence[Group], within: float | None = None, beat: Callable[[], object] = lambda: None
    ) -> list[Group]:
        """The groups with their rewards, and with what these are made of among the parts of the verdicts."""
        requests = [request for group in groups for request in self._requests(group)]
        found = iter(self.pool.reward_all(requests, within, beat))
        return [self._scored(group, [_column(each, group, found) for each in self.takes_batches]) for group in groups]

    def _requests(self, group: Group) -> list[RewardRequest]:
        """One call for each completion, or one for all of a group; in the order of the functions."""
        inputs = tuple(_input(group.problem, answer) for answer in group.answers)
        calls: list[RewardRequest] = []
        for place, batch in enumerate(self.takes_batches):
            shares = [inputs] if batch else [(each,) for each in inputs]
            calls += [RewardRequest(place, group.problem.id, share) for share in shares if share]
        return calls

    def _scored(self, group: Group, columns: Sequence[Sequence[Value]]) -> Group:
        rewarded: list[Answer] = []
        errors: list[str] = []
        for place, answer in enumerate(group.answers):
            found = self._rewarded(answer, [column[place] for column in columns])
            errors.append(found) if isinstance(found, str) else rewarded.append(found)
        reasons = (*(why for why, _ in group.invalid), *["reward_function"] * len(errors))
        return replace(group, answers=tuple(rewarded), errors=(*group.errors, *errors), reasons=reasons)

    def _rewarded(self, answer: Answer, values: Sequence[Value]) -> Answer | str:
        """The answer with its reward, or which function failed on it, and why."""
        numbers: dict[str, float] = {}
        reward = self.verifier_weight * answer.reward
        for function, value in zip(self.functions, values, strict=True):
            if isinstance(value, str):
                return f"reward function {function.part} failed: {value}"
            numbers[function.part] = value
            reward += function.weight * value
        parts = {**answer.verdict.parts, "verifier": answer.reward, **numbers}
        return replace(answer, verdict=replace(answer.verdict, parts=parts), reward=reward)


def _column(batch: bool, group: Group, found: Iterator[list[Value]]) -> list[Value]:
    """What one function made of the answers of a group."""
    if batch:
        return next(found) if group.answers else []
    return [next(found)[0] for _ in group.answers]


def _input(problem: Problem, answer: Answer) -> RewardInput:
    """What reward functions may see of an answer."""
    if answer.turns:
        completion = answer.completion.text
        said = [{"role": turn.role, "content": turn.text} for turn in answer.turns]
    else:
        completion = problem.prefix + answer.completion.text
        said = [{"role": "user", "content": problem.prompt}, {"role": "assistant", "content": completion}]
    return RewardInput(problem.prompt, completion, problem.answer, said, answer.length, answer.reward)
