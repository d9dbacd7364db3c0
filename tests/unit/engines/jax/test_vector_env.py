from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax import vector_env
from operant.engines.jax.episodes import finished_episodes
from operant.engines.jax.learner import UpdateMetrics
from operant.engines.jax.tracker import Tracker
from operant.engines.jax.vector_env import RECORDED, VecEnvState
from operant.envs.functional.classic import CartPole


def test_successors_of_truncated_steps_are_their_final_observations():
    """Two environments, four steps; the first is truncated twice, at 0 and 2, the second once, at 3."""
    truncations = vector_env.empty_truncations(2, jnp.zeros((2, 1)))
    truncated = [[True, False], [False, False], [True, False], [False, True]]
    for t, row in enumerate(truncated):
        final = jnp.array([[10.0 + t], [20.0 + t]])
        truncations = vector_env.store_truncation(truncations, jnp.array(row), final)
    value = jnp.arange(8.0).reshape(4, 2)
    last = jnp.array([100.0, 200.0])
    ahead = vector_env.next_values(value, last, truncations.observation[..., 0], jnp.array(truncated))
    assert ahead.tolist() == [[10.0, 3.0], [4.0, 5.0], [12.0, 7.0], [100.0, 23.0]]


def test_room_for_truncations_follows_from_the_time_limit():
    assert vector_env.truncation_slots(CartPole(limit=500), 128) == 1
    assert vector_env.truncation_slots(CartPole(limit=128), 128) == 1
    assert vector_env.truncation_slots(CartPole(limit=127), 128) == 2
    assert vector_env.truncation_slots(CartPole(limit=10), 128) is None


def test_scores_go_on_over_rollouts_and_every_episode_is_counted():
    before = VecEnvState(None, jnp.zeros((3, 1)), jnp.array([5.0, 0.0, 1.0]), jnp.array([2, 0, 1]))
    reward = jnp.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    terminated = jnp.array([[True, False, False], [False, False, False]])
    truncated = jnp.array([[False, False, False], [False, True, False]])
    after, recorded, ended = vector_env.count_episodes(before, reward, terminated, truncated, {"stage": reward}, None)
    assert after.score.tolist() == [1.0, 0.0, 7.0]
    assert after.length.tolist() == [1, 0, 3]
    assert [float(part) for part in ended] == [2.0, 6.0 + 4.0, 3.0 + 2.0]
    rows = finished_episodes(jax.tree.map(lambda part: np.asarray(part)[None], recorded))
    assert [(row.score, row.length, row.terminated) for row in rows] == [(6.0, 3, True), (4.0, 2, False)]
    assert [row.parts for row in rows] == [{"stage": 1.0}, {"stage": 2.0}]


def test_only_the_first_environments_are_recorded():
    many = RECORDED + 5
    zeros = jnp.zeros((2, many))
    start = VecEnvState(None, zeros[0], zeros[0], jnp.zeros(many, jnp.int32))
    _, recorded, ended = vector_env.count_episodes(start, zeros, zeros == 0, zeros > 0, {}, None)
    assert recorded.over.shape == (2, RECORDED)
    assert float(ended.episodes) == 2 * many


def report(episodes: int, score: float, loss: float, learned: int = 1) -> UpdateMetrics:
    numbers = {"loss/policy": loss}, {"reward/kill": 2 * loss}, {"stats/highest_stage": loss}
    return UpdateMetrics(*numbers, learned, 4, episodes, score, 10.0 * episodes, None)  # pyright: ignore[reportArgumentType]


def test_rows_of_a_tracker_go_on_after_a_restart():
    one = Tracker()
    one.add(report(60, 600.0, 1.0), 100, 1)
    one.add(report(60, 1200.0, 3.0), 100, 1)
    other = Tracker()
    other.restore(one.state())
    for tracker in (one, other):
        tracker.add(report(60, 1800.0, 5.0), 100, 1)
    row = one.flush()
    assert row == other.flush()
    # The latest two chunks hold 100 episodes between them; the first is forgotten.
    assert row["train/return"] == pytest.approx(25.0)
    assert (row["loss/policy"], row["reward/kill"], row["stats/highest_stage"]) == (3.0, 6.0, 5.0)
    assert (one.frames, one.updates, one.episodes) == (300, 12, 180)


def test_rounds_that_did_not_learn_are_not_averaged():
    tracker = Tracker()
    tracker.add(report(0, 0.0, 0.0, learned=0), 100, 1)
    assert "loss/policy" not in tracker.flush()
    tracker.add(report(0, 0.0, 6.0, learned=2), 100, 3)
    assert tracker.flush()["loss/policy"] == 3.0
