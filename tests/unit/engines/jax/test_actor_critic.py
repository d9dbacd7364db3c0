"""Observations stored in rows of a length that a GPU multiplies well: what is learned does not change."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax import actor_critic
from operant.engines.jax.learners import build_learner
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

SPEC = {
    "engine": "jax",
    "env": {"name": "HackMatrix-v0", "num_envs": 4, "max_frame": 1000},
    "agent": {
        "algorithm": {"name": "ppo", "time_horizon": 8, "minibatch_size": 16, "training_epoch": 2},
        "net": {"hidden": [32], "shared": True},
    },
    "meta": {"device": "cpu"},
}


def updated(document: dict) -> tuple[Any, Any, Any]:
    """The learner, and its train state and metrics after one update."""
    spec = Spec.model_validate(document)
    learner = build_learner(spec)
    state = learner.init(jax.random.key(0), learner.init_params(Seeds(0).rng("init")), None)
    return learner, *jax.jit(lambda state, hyper: learner.update(state, hyper, None))(state, learner.hyper(spec))


def test_a_padded_update_is_the_same_update(monkeypatch: pytest.MonkeyPatch) -> None:
    _, plain, plain_metrics = updated(SPEC)
    monkeypatch.setattr(actor_critic, "on_gpu", lambda: True)
    learner, padded, padded_metrics = updated(SPEC)
    seen = jnp.ones((3, 1545))
    assert learner.stored(seen).shape == (3, 1552)
    assert not learner.stored(seen)[:, 1545:].any()
    for one, other in zip(jax.tree.leaves(plain.policy), jax.tree.leaves(padded.policy), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(plain_metrics.episodes, padded_metrics.episodes)


@pytest.mark.parametrize("setting", [{"normalize_obs": True}, {"name": "CartPole-v1"}])
def test_observations_that_stay_as_they_are(setting: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_critic, "on_gpu", lambda: True)
    learner = build_learner(Spec.model_validate({**SPEC, "env": {**SPEC["env"], **setting}}))
    assert isinstance(learner, actor_critic.ActorCritic)
    width = learner.env.observation_shape[0]
    assert learner.stored(jnp.ones((3, width))).shape == (3, width)
