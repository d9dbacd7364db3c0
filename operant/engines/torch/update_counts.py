"""What a whole session adds up to, by the learner's own account."""

from __future__ import annotations

from dataclasses import dataclass

from operant.spec.schema import Spec


@dataclass(frozen=True)
class UpdateCounts:
    """The derived numbers of a session that `operant check` shows and scales by.

    `lines` tell a person how frames become gradient steps; `updates` are those steps in all;
    `warm_up` frames pass before the first of them; `growth` bytes will yet be added to a
    checkpoint written now.
    """

    lines: list[str]
    updates: int
    warm_up: int = 0
    growth: int = 0


def rollout_update_counts(spec: Spec, steps: int) -> UpdateCounts:
    """Updates of `steps` steps of each environment, with one gradient step each."""
    envs = spec.env.num_envs
    updates = -(-spec.env.max_frame // (envs * steps))
    line = (
        f"{updates:,} updates x {envs * steps:,} samples ({envs} envs x {steps} steps)"
        f" = {updates * envs * steps:,} frames, one gradient step each"
    )
    return UpdateCounts([line], updates=updates)
