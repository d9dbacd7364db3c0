"""A checkpoint's policy at play before a person's eyes: in Gymnasium's form of the problem, which can be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from operant.engines.jax.actor import load_policy
from operant.engines.jax.learner import GREEDY
from operant.envs.watch import Decide, Decision, watch_policy
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.stored import stored


def show(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Play greedily on the seeds from `seed` on, where `sink` says."""
    spec = stored(run.spec)
    seeds = range(seed, seed + episodes)
    return watch_policy(spec.env, lambda: greedy(spec, checkpoint.path), seeds, sink, checkpoint.at)


def greedy(spec: Spec, checkpoint: Path) -> Decide:
    """The checkpoint's best actions, and what it thinks of the others where its algorithm can tell."""
    learner, policy = load_policy(spec, checkpoint)
    hyper = learner.hyper(spec)

    @jax.jit
    def think(seen: jax.Array, mask: jax.Array | None) -> tuple[jax.Array, Any]:
        action = learner.act(policy, hyper, seen, mask, jax.random.key(0), jnp.int32(GREEDY))
        return action, learner.think(policy, seen, mask)

    def decide(seen: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
        del begins  # no policy of this engine remembers
        action, thought = think(seen.reshape(1, -1), mask)
        probabilities, value = (None, None) if thought is None else (np.asarray(part)[0] for part in thought)
        return Decision(np.asarray(action), probabilities, value)

    return decide
