"""A checkpoint's policy at play."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from operant.engines.jax import codec
from operant.engines.jax.learner import GREEDY, SAMPLED, Learner, Policy
from operant.engines.jax.learners import build_learner
from operant.engines.jax.playing import Ended, Player
from operant.engines.jax.program import compiler_options, prepare_jax, stacked
from operant.spec.schema import Spec


def load_policy(spec: Spec, checkpoint: Path) -> tuple[Learner, Policy]:
    """The learner of a spec and the policy of a checkpoint, on one device: a GPU's policy plays without one too."""
    device = "auto" if spec.meta.device == "cuda" else spec.meta.device
    spec = spec.model_copy(update={"meta": spec.meta.model_copy(update={"devices": 1, "device": device})})
    prepare_jax(spec)
    learner = build_learner(spec)
    weights = learner.weights(np.random.default_rng(0))
    like = jax.eval_shape(lambda key: learner.init(key, weights, None).policy, jax.random.key(0))
    return learner, codec.read_policy(checkpoint, like)


def play_checkpoint(spec: Spec, checkpoint: Path, episodes: int, seed: int, greedy: bool) -> Iterator[Ended]:
    """One episode for each of the seeds `seed`, `seed + 1`, ..."""
    learner, policy = load_policy(spec, checkpoint)
    player = Player(learner, stacked([learner.hyper(spec)]), episodes, compiler_options(spec))
    yield from player.one(policy, seed, episodes, GREEDY if greedy else SAMPLED)
