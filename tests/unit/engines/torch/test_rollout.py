"""Whole episodes as a rollout of one column: who plays them, in which order they lie, and what is counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from operant.engines.torch.a2c import A2c
from operant.engines.torch.ppo import Ppo
from operant.engines.torch.sarsa import Sarsa
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

NUM, EPISODES = 3, 6
LEARNERS: dict[str, type[A2c | Ppo | Sarsa]] = {"a2c": A2c, "ppo": Ppo, "sarsa": Sarsa}


def learner(name: str, net: dict[str, Any] | None = None, **env: Any) -> Any:
    algorithm = {"name": name, "training_episodes": EPISODES}
    spec = Spec.model_validate(
        {"env": {"num_envs": NUM, **env}, "agent": {"algorithm": algorithm, "net": net or {"hidden": [16]}}}
    )
    return LEARNERS[name](spec, Seeds(3), torch.device("cpu"))


@pytest.mark.parametrize("name", LEARNERS)
def test_every_environment_plays_its_share_from_start_to_end(name: str):
    built = learner(name)
    rollout = built.collect()
    assert Counter(over.index for over in rollout.ended) == dict.fromkeys(range(NUM), EPISODES // NUM)
    assert rollout.reward.shape == (sum(over.length for over in rollout.ended), 1)
    assert all(len(built.vector.state()[f"actions/{i}"]) == 0 for i in range(NUM)), "all stand at a fresh start"


@pytest.mark.parametrize("name", LEARNERS)
def test_an_episode_is_what_its_seed_and_actions_give_and_lies_in_one_piece(name: str):
    """Each piece of the column, played again in an environment of its own."""
    rollout = learner(name).collect()
    ends = np.flatnonzero(rollout.terminated | rollout.truncated)
    by_env = sorted(rollout.ended, key=lambda over: over.index)
    assert len(ends) == EPISODES
    start = 0
    for end, over in zip(ends.tolist(), by_env, strict=True):
        assert end + 1 - start == over.length
        env = gym.make("CartPole-v1")
        seen, _ = env.reset(seed=over.seed)
        for s in range(start, end + 1):
            np.testing.assert_array_equal(rollout.obs[s, 0], seen)
            seen, _, terminated, truncated, _ = env.step(int(rollout.action[s, 0]))
            assert (rollout.terminated[s, 0], rollout.truncated[s, 0]) == (terminated, truncated)
        np.testing.assert_array_equal(rollout.final_obs[end, 0], seen)
        start = end + 1


@pytest.mark.parametrize("name", LEARNERS)
def test_frames_are_the_steps_that_were_played(name: str):
    built = learner(name)
    ended = built.iterate()
    assert built.tracker.frames == sum(over.length for over in ended)
    assert built.tracker.episodes == EPISODES
    assert "6 whole episodes (3 envs x 2)" in built.update_counts().lines[0]


@pytest.mark.parametrize("name", LEARNERS)
def test_an_environment_that_waits_adds_nothing_to_the_statistics(name: str):
    """The statistics are those of every observation and every discounted return that was played, each once."""
    built = learner(name, normalize_obs=True, normalize_reward=True)
    frames = sum(over.length for over in built.iterate())
    ahead = NUM if name == "sarsa" else 0  # it has looked at the first observations when it is built
    assert built.actor.obs_normalizer.moments.count == frames + ahead
    assert built.rewards.moments.count == frames + NUM  # and these begin with a zero of each environment


def test_a_recurrent_network_starts_every_episode_from_nothing():
    """What it computes of the whole column is what it computes of each episode alone."""
    built = learner("a2c", {"type": "gru", "hidden": [8], "recurrent": 8})
    rollout = built.collect()
    with torch.no_grad():
        output, value = built.forward(built.observations(rollout))
        ends = np.flatnonzero(rollout.terminated | rollout.truncated) + 1
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            obs = torch.from_numpy(rollout.obs[start:end, 0])[None]
            begun = torch.zeros(1, int(end - start), dtype=torch.bool)
            alone = built.net(obs, begun, torch.zeros(1, rollout.hidden.start.shape[1]))
            torch.testing.assert_close(output[:, start:end], alone[0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(value[:, start:end], alone[1], rtol=1e-4, atol=1e-5)


def test_ppo_learns_from_every_step_once_an_epoch():
    """The last minibatch has what is left; a recurrent network takes all episodes at once."""
    built = learner("ppo")
    built.algorithm = built.algorithm.model_copy(update={"minibatch_size": 32, "training_epoch": 2})
    rollout = built.collect()
    built.update(rollout)
    assert built.tracker.updates == 2 * -(-len(rollout.reward) // 32)
    recurrent = learner("ppo", {"type": "gru", "hidden": [8], "recurrent": 8})
    recurrent.iterate()
    assert recurrent.tracker.updates == recurrent.algorithm.training_epoch
