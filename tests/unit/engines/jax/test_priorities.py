"""Prioritised replay: who is drawn how often, and the weights and priorities of the torch engine."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax import priorities
from operant.engines.jax.program import stacked
from operant.engines.jax.programs import build_program
from operant.engines.torch.buffers.replay import Priorities as DeepPriorities
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.memories import PrioritisedReplaySpec

MEMORY = PrioritisedReplaySpec(alpha=0.7, epsilon=0.01)


def test_priorities_and_weights_are_those_of_the_torch_engine():
    rng = np.random.default_rng(0)
    ours, deep = priorities.init(2, 10), DeepPriorities(20, MEMORY.alpha, MEMORY.epsilon)
    ready = np.zeros((2, 10), bool)
    for slot in range(8):
        ours = priorities.add(ours, jnp.array([slot, slot]))
        deep.add(np.array([slot, 10 + slot]))
        ready[:, slot] = True
        index, error = np.array([slot, 10 + slot // 2]), (3 * rng.normal(size=2)).astype(np.float32)
        ours = priorities.update(ours, jnp.asarray(index), jnp.asarray(error), MEMORY)
        deep.update(index, error)
    np.testing.assert_allclose(ours.slots.reshape(-1), deep.state()["leaves"].reshape(-1)[:20], rtol=1e-5)
    np.testing.assert_allclose(ours.largest, deep.state()["largest"], rtol=1e-5)
    found, weight = priorities.draw(ours, jnp.asarray(ready), jnp.asarray(rng.random(12)), jnp.float32(0.6))
    np.testing.assert_allclose(weight, deep.weights(np.asarray(found), 16, 0.6), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_draws_are_in_proportion_to_weight(size: int):
    rng = np.random.default_rng(size)
    weight = np.where(rng.random(size) < 0.3, 0, rng.random(size)).astype(np.float32)
    weight[0] = 1.0
    mass = (np.arange(20_000) + rng.random(20_000)) / 20_000 * weight.sum(dtype=np.float64)
    index = np.asarray(priorities.weighted_draw(jnp.asarray(weight), jnp.asarray(mass, jnp.float32)))
    counts = np.bincount(index, minlength=size)
    assert not counts[weight == 0].any()
    # Drawn by strata, a slot's share is off by one draw at each end at most, and by rounding.
    np.testing.assert_allclose(counts, 20_000 * weight / weight.sum(), atol=3)


def test_mass_at_the_very_end_names_the_last_slot_that_weighs_anything():
    weight = jnp.array([1.0, 2.0, 0.0, 3.0, 0.0, 0.0])
    assert priorities.weighted_draw(weight, jnp.array([0.0, 1.0, 2.9, 3.0, 6.0, 7.0])).tolist() == [0, 1, 1, 3, 3, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env"),
    [("dqn", "CartPole-v1"), ("sac", "CartPole-v1"), ("td3", "Pendulum-v1"), ("crossq", "Pendulum-v1")],
)
def test_every_off_policy_algorithm_learns_priorities_in_compiled_environments(algorithm: str, env: str):
    document = {
        "engine": "jax",
        "env": {"name": env, "num_envs": 2, "max_frame": 2000},
        "agent": {
            "algorithm": {"name": algorithm, "training_start": 100, "training_frequency": 4},
            "memory": {"name": "prioritised", "max_size": 400, "batch_size": 8},
            "net": {"hidden": [8]},
        },
    }
    spec = Spec.model_validate(document)
    program = build_program(spec, 1)
    states, _ = program.chunk(program.start([Seeds(0)]), stacked([program.learner.hyper(spec)]), np.int32(30))
    slots = np.asarray(states.rollout.priorities.slots)[0]
    assert (slots[:, :60] > 0).all(), "60 steps were stored of each"
    assert not slots[:, 60:].any()
    assert len(np.unique(slots[:, :60])) > 20, "those that were sampled have priorities of their own"
