"""Reward functions at work: what they see of a completion, and what becomes of one that fails.

They run in the worker processes of the verifiers, in each of which a `RewardFunctions` is made from plain data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operant.spec.settings.rewards import BATCH_INPUTS, INPUTS, REWARDS, RewardSpec, wanted_inputs

LONGEST_NOTE = 300  # characters
SECONDS = 10.0
"""Time limit of one call, unless `env.text.seconds` says another."""

Value = float | str
"""What a reward function made of a completion, or why it made nothing of it."""


@dataclass(frozen=True)
class RewardInput:
    """What a reward function may see of one completion.

    `completion` is what the policy wrote, in a dialogue last; `conversation` is all that was said, as a list of
    {"role": ..., "content": ...}; `answer` is the problem's own, which a verifier needs. `length` counts the tokens
    that the policy wrote, and `score` is what the task's verifier or environment made of it.
    """

    prompt: str
    completion: str
    answer: Any
    conversation: list[dict[str, str]]
    length: int
    score: float


@dataclass(frozen=True)
class RewardRequest:
    """One call: the place of the function among those of the spec, and completions to one problem."""

    function: int
    problem: str
    inputs: tuple[RewardInput, ...]


class RewardFunctions:
    """The reward functions of a spec, from its plain data (final)."""

    def __init__(self, settings: Sequence[Mapping[str, Any]]) -> None:
        self.specs: list[RewardSpec] = [REWARDS.find(each["name"]).model_validate(each) for each in settings]
        self.wanted = [wanted_inputs(spec.function, str(spec.name)) for spec in self.specs]

    def compute(self, request: RewardRequest) -> list[Value]:
        """A value for each completion; whatever the function raises, or returns instead of numbers, is told."""
        spec, (names, batch) = self.specs[request.function], self.wanted[request.function]
        if not batch:
            return [_one(spec, {name: getattr(each, name) for name in names}) for each in request.inputs]
        single: dict[str, str] = dict(zip(BATCH_INPUTS, INPUTS, strict=True))
        lists = {name: [getattr(each, single[name]) for each in request.inputs] for name in names}
        return _batch(spec, lists, len(request.inputs))


def takes_batches(spec: RewardSpec) -> bool:
    """Whether a reward function wants all completions to a problem at once."""
    return wanted_inputs(spec.function, str(spec.name))[1]


def _one(spec: RewardSpec, inputs: dict[str, Any]) -> Value:
    try:
        return _number(spec.function(**inputs, **spec.arguments()))
    except Exception as problem:  # code of others may fail in any way
        return _note(problem)


def _batch(spec: RewardSpec, inputs: dict[str, list[Any]], count: int) -> list[Value]:
    try:
        found = list(spec.function(**inputs, **spec.arguments()))
        if len(found) != count:
            raise ValueError(f"returned {len(found)} values for {count} completions")
    except Exception as problem:  # code of others may fail in any way
        return [_note(problem)] * count
    return [_checked(each) for each in found]


def _checked(found: Any) -> Value:
    try:
        return _number(found)
    except Exception as problem:  # a value of others may refuse to be a number in any way
        return _note(problem)


def _number(found: Any) -> Value:
    if isinstance(found, str | bytes):
        return f"returned the text {found!r}"[:LONGEST_NOTE]
    value = float(found)
    return value if math.isfinite(value) else f"returned {value}"


def _note(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"[:LONGEST_NOTE]


def regex(completion: str, *, pattern: str) -> float:
    """1 where the whole completion matches."""
    return float(re.fullmatch(pattern, completion, re.DOTALL) is not None)


def soft_overlong(length: int, *, max_length: int, buffer: int) -> float:
    """0 up to `max_length - buffer` tokens, -1 from `max_length` on, and a straight line between."""
    return -min(max(length - (max_length - buffer), 0) / buffer, 1.0)
