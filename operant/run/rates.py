"""What the parts of a language run take, as a run's telemetry or a short measurement found it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

VARIED = 1.5
"""How much calls of a generator must differ in size for the two parts of their time to be told apart."""
DRAWS = 200


@dataclass(frozen=True)
class Rates:
    """Seconds of each part of a language run on one device, and the lengths of what is written.

    A generator that writes `b` completions side by side takes `step_seconds + b * token_seconds` for one more token of
    each. `train_token_seconds` are those of a trainer's process for all updates of a round, by completion token.
    `verify_seconds` are those of a verifier for one answer. Handing over weights takes the trainer `publish_seconds`
    and each generator `load_seconds`, beside the transfer of `weight_bytes`. Whatever else the trainer does in a round,
    such as its records, takes `round_seconds`. `signal` is the share of groups whose rewards differ.
    """

    token_seconds: float
    step_seconds: float
    train_token_seconds: float
    verify_seconds: float
    lengths: tuple[int, ...]
    weight_bytes: int
    publish_seconds: float = 0.0
    load_seconds: float = 0.0
    round_seconds: float = 0.0
    signal: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.endswith("_seconds") and not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}, which is no duration")
        if not self.lengths or min(self.lengths) < 1:
            raise ValueError("rates need the lengths of some completions")

    @property
    def mean_length(self) -> float:
        """Tokens of a completion, on average."""
        return sum(self.lengths) / len(self.lengths)

    def tokens_per_second(self, slots: int) -> float:
        """What a generator writes with all its slots in use."""
        return slots / max(self.step_seconds + slots * self.token_seconds, 1e-12)


@dataclass(frozen=True)
class Call:
    """One call of a generator: its completions, their tokens, and how long it took."""

    completions: int
    tokens: float
    seconds: float


def fit_decoding(calls: Sequence[Call], lengths: Sequence[int], slots: int) -> tuple[float, float, list[str]]:
    """Seconds of a token and of a decoding step, by least squares over calls, and remarks on what they cannot tell."""
    sizes = [call.completions for call in calls]
    tokens, seconds = np.array([call.tokens for call in calls]), np.array([call.seconds for call in calls])
    alone = float(seconds.sum() / max(tokens.sum(), 1))
    if max(sizes) < VARIED * min(sizes):
        told = f"the generator always wrote about {round(median(sizes)):,} completions side by side: fewer are supposed"
        return alone, 0.0, [f"{told} to take as long by token; --decode-step-seconds says what one more step takes"]
    rng = np.random.default_rng(0)
    expected = {size: _expected_steps(size, lengths, slots, rng) for size in set(sizes)}
    steps = np.array([expected[size] for size in sizes])
    # Errors count relative to the length of a call, so that small ones are fitted too.
    table = np.stack([tokens, steps], axis=1) / seconds[:, None]
    (by_token, by_step), *_ = np.linalg.lstsq(table, np.ones(len(calls)), rcond=None)
    if by_token < 0:
        return 0.0, float(seconds.sum() / steps.sum()), []
    return (alone, 0.0, []) if by_step < 0 else (float(by_token), float(by_step), [])


def _expected_steps(completions: int, lengths: Sequence[int], slots: int, rng: np.random.Generator) -> float:
    """Decoding steps of so many completions, on average over draws of their lengths."""
    draws = rng.choice(np.asarray(lengths), size=(DRAWS, completions))
    return float(np.mean([decoding_steps(row, slots) for row in draws]))


def decoding_steps(lengths: Sequence[int] | np.ndarray, slots: int) -> int:
    """Steps until all completions are written, where each begins as soon as one of the slots is free."""
    if len(lengths) <= slots:
        return int(max(lengths))
    ends = [int(length) for length in lengths[:slots]]
    heapq.heapify(ends)
    for length in lengths[slots:]:
        heapq.heappushpop(ends, ends[0] + int(length))
    return max(ends)
