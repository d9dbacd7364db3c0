"""Rewards whose threshold moves with what rollouts have reached: the best of all so far, or a percentile of the last.

A threshold stays as it is for so many rollouts, so that all of a round are held to the same one, and then takes in
what they reached. What it has seen is part of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.research.rewards import tiered
from operant.envs.text.task import Verdict
from operant.spec.settings.language import TextSpec

MOVING = ("moving_best", "percentile")
LEAST_SEEN = 8


class MovingReward:
    """The rewards of rounds, one after the other (final)."""

    def __init__(self, text: TextSpec, round_size: int) -> None:
        self.scheme = text.dialogue.reward
        self.window, self.percentile = text.dialogue.reward_window, text.dialogue.reward_percentile
        self.every = text.dialogue.reward_every or round_size
        self.weight = text.verifier_weight if text.reward_functions else 1.0

    @property
    def moves(self) -> bool:
        """Whether the scheme has a threshold that moves."""
        return self.scheme in MOVING

    def rewarded(self, groups: Sequence[Group], state: dict[str, Any]) -> list[Group]:
        """The groups with rewards by the threshold; `state` takes in what they reached."""
        return [replace(group, answers=tuple(self._answer(each, state) for each in group.answers)) for group in groups]

    def _answer(self, answer: Answer, state: dict[str, Any]) -> Answer:
        measured, threshold = _measured(answer.verdict), state.get("threshold", 0.0)
        above = measured is not None and (
            measured >= threshold if self.scheme == "moving_best" else measured > threshold
        )
        reward = tiered(measured, above)
        parts = {**answer.verdict.parts, self.scheme: reward, "threshold": threshold}
        before = answer.verdict.parts.get("verifier", answer.reward)
        self._take_in(measured, state)
        verdict = replace(answer.verdict, parts=parts)
        return replace(answer, verdict=verdict, reward=answer.reward + self.weight * (reward - before))

    def _take_in(self, measured: float | None, state: dict[str, Any]) -> None:
        waiting = [*state.get("waiting", ()), measured]
        if len(waiting) >= self.every:
            seen = [*state.get("seen", ()), *(each for each in waiting if each is not None)]
            state["seen"] = [max(seen, default=0.0)] if self.scheme == "moving_best" else seen[-self.window :]
            state["threshold"] = self._threshold(state["seen"])
            waiting = []
        state["waiting"] = waiting

    def _threshold(self, seen: Sequence[float]) -> float:
        if self.scheme == "moving_best":
            return max([0.0, *seen])
        return float(np.percentile(seen, self.percentile)) if len(seen) >= LEAST_SEEN else 0.0


def _measured(verdict: Verdict) -> float | None:
    """How far above the baseline a rollout came; of a task without trees its score."""
    if "nodes" in verdict.parts:
        return verdict.parts.get("measured")
    return None if verdict.score is None else max(verdict.score, 0.0)
