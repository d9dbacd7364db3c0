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

    A function that fails on a completion adds 0 to its reward; the answer keeps the reason in `reward_errors`.
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
        answers = (
            self._rewarded(answer, [column[place] for column in columns]) for place, answer in enumerate(group.answers)
        )
        return replace(group, answers=tuple(answers))

    def _rewarded(self, answer: Answer, values: Sequence[Value]) -> Answer:
        pairs = list(zip(self.functions, values, strict=True))
        numbers = [0.0 if isinstance(value, str) else value for value in values]
        errors = tuple((function.part, value) for function, value in pairs if isinstance(value, str))
        weighted = (function.weight * number for function, number in zip(self.functions, numbers, strict=True))
        parts = {
            **answer.verdict.parts,
            "verifier": answer.reward,
            **{function.part: number for function, number in zip(self.functions, numbers, strict=True)},
            "reward_errors": float(len(errors)),
        }
        return replace(
            answer,
            verdict=replace(answer.verdict, parts=parts),
            reward=self.verifier_weight * answer.reward + sum(weighted),
            reward_errors=errors,
        )


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
