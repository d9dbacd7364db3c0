"""A checkpoint's policy at play before a person's eyes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from operant.engines.torch.actor import Actor
from operant.engines.torch.learners import load_actor
from operant.envs.watch import Decide, Decision, watch_policy
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.stored import stored


def show(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Play greedily on the seeds from `seed` on, where `sink` says."""
    spec = stored(run.spec)
    seeds = range(seed, seed + episodes)
    return watch_policy(spec.env, lambda: greedy(load_actor(spec, checkpoint.path)), seeds, sink, checkpoint.at)


def greedy(actor: Actor) -> Decide:
    """The actor's best actions, without a word on the others."""

    def decide(obs: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
        return Decision(actor.greedy(obs, mask, begins))

    return decide
