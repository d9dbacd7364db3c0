"""SARSA's one rule: the target's next action is the one that is really played next."""

from __future__ import annotations

import numpy as np
import torch

from operant.engines.torch.sarsa import Sarsa
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def learner(max_t: int | None = None, epsilon: float = 0.5) -> Sarsa:
    algorithm = {"name": "sarsa", "training_frequency": 5, "gamma": 0.9, "epsilon": epsilon}
    env = {"num_envs": 2, "max_t": max_t, "normalize_obs": True}
    spec = Spec.model_validate({"env": env, "agent": {"algorithm": algorithm}})
    return Sarsa(spec, Seeds(3), torch.device("cpu"))


def test_the_action_chosen_before_an_update_is_played_after_it():
    built = learner()
    for _ in range(20):
        promised = built.chosen.action
        rollout = built.collect()
        built.update(rollout)
        assert np.array_equal(rollout.action[0], promised)


def test_every_observation_enters_the_statistics_once():
    built = learner()
    for _ in range(3):
        built.iterate()
    assert built.actor.obs_normalizer.moments is not None
    assert built.actor.obs_normalizer.moments.count == 2 * (1 + 3 * 5)


def test_targets_bootstrap_from_the_played_action_and_at_a_time_limit_from_the_expectation():
    """With a time limit of 5 every rollout of 5 ends all its episodes by truncation at the last step."""
    built = learner(max_t=5)
    rollout = built.collect()
    assert rollout.truncated[-1].all()
    played = torch.arange(10.0).reshape(5, 2)
    actual = built.targets(rollout, played).numpy()
    finals = built.actor.obs_normalizer(np.stack([rollout.final_obs[4, n] for n in range(2)]))
    with torch.no_grad():
        q = built.net(torch.from_numpy(finals)).numpy()
    expected = rollout.reward + 0.9 * played.numpy()
    expected[-1] = rollout.reward[-1] + 0.9 * (0.5 * q.max(-1) + 0.5 * q.mean(-1))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
