"""What a whole session adds up to, by the learner's own account."""

from __future__ import annotations

from dataclasses import dataclass

from operant.engines.torch.tracker import Tracker
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


def episode_update_counts(spec: Spec, tracker: Tracker, episodes: int) -> UpdateCounts:
    """Updates of `episodes` whole episodes, with one gradient step each; how many is known once some were played."""
    played = played_so_far(spec, tracker)
    line = (
        f"each update: {played.shares(episodes)}, one gradient step;"
        f" about {played.updates:,} gradient steps in all if episodes stay as long as at first"
    )
    return UpdateCounts([line], updates=played.updates)


@dataclass(frozen=True)
class PlayedSoFar:
    """What episodes of unknown length are measured by: the gradient steps in all, if they stay as long as so far."""

    envs: int
    updates: int

    def shares(self, episodes: int) -> str:
        """The episodes of one update, in words."""
        return f"{episodes} whole episodes ({self.envs} envs x {episodes // self.envs})"


def played_so_far(spec: Spec, tracker: Tracker) -> PlayedSoFar:
    """By the frames and gradient steps that a learner has counted; no gradient steps before the first frame."""
    updates = spec.env.max_frame * tracker.updates // tracker.frames if tracker.frames else 0
    return PlayedSoFar(spec.env.num_envs, updates)
