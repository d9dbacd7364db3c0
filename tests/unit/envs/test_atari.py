"""Atari games: restarts by seed, lives, whole-game scores, settings that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.envs.gym import make_env
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.errors import UsageError
from operant.spec.settings.sections import EnvSpec

pytest.importorskip("ale_py", reason="ale-py is not installed: scripts/uv sync --inexact --extra deep")

SMALL = {"img_height": 21, "img_width": 21, "noop_max": 3}


def games(name: str = "ALE/Breakout-v5", num: int = 2, max_t: int | None = 30, **kwargs: Any) -> AutoresetVectorEnv:
    spec = EnvSpec(name=name, num_envs=num, max_t=max_t, kwargs={**SMALL, **kwargs})
    return AutoresetVectorEnv(spec, num, lambda i, k: 100 * i + k)


def play(vector: AutoresetVectorEnv, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [vector.step(rng.integers(vector.actions.size, size=vector.num)) for _ in range(steps)]


def test_observations_are_stacks_of_bytes():
    vector = games()
    assert vector.obs.shape == (2, 4, 21, 21)
    assert vector.obs.dtype == np.uint8
    assert vector.env.stack == 4
    vector.close()


def test_each_step_brings_one_frame():
    vector = games(max_t=None)
    before = vector.obs
    for step in play(vector, 5):
        assert np.array_equal(step.next_obs[:, :-1], before[:, 1:])
        before = step.obs
    vector.close()


def test_an_episode_is_its_seed_and_its_actions_whatever_came_before():
    first, second = games(), games()
    play(first, 45)
    state = first.state()
    assert [len(state[f"actions/{i}"]) for i in range(2)] == [15, 15]
    second.restore(state)
    ours, theirs = play(first, 20, seed=1), play(second, 20, seed=1)
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one.next_obs, other.next_obs)
        assert np.array_equal(one.reward, other.reward)
    assert [e.score for s in ours for e in s.ended] == [e.score for s in theirs for e in s.ended]
    first.close()
    second.close()


def test_a_game_that_waits_shows_what_it_showed_and_goes_on_from_there():
    waited, straight = games(max_t=None), games(max_t=None)
    before = play(waited, 10)[-1].obs
    play(straight, 10)
    for _ in range(5):
        step = waited.step(np.array([1, 1]), np.array([False, True]))
        assert np.array_equal(step.obs[0], before[0])
        assert not np.array_equal(step.obs[1], before[1])
        assert step.reward[0] == 0
    assert len(waited.state()["actions/0"]) == 10
    for one, other in zip(play(waited, 10, seed=1), play(straight, 10, seed=1), strict=True):
        assert np.array_equal(one.next_obs[0], other.next_obs[0])
    waited.close()
    straight.close()


def test_a_game_that_waits_before_it_begins_shows_its_beginning():
    one, other = games(), games()
    alone = np.array([True, False])
    steps = [one.step(np.array([1, 1]), alone) for _ in range(30)]
    first = steps[-1].obs[0]
    assert steps[-1].ended[0].index == 0
    assert np.array_equal(one.step(np.array([1, 1]), ~alone).obs[0], first)
    state = one.state()
    other.restore(state)
    assert np.array_equal(other.obs, state["obs"])
    one.close()
    other.close()


def test_a_time_limit_truncates_and_the_game_begins_anew():
    vector = games()
    steps = play(vector, 30)
    assert steps[-1].truncated.all()
    assert not steps[-1].terminated.any()
    assert [(e.index, e.length, e.terminated) for e in steps[-1].ended] == [(0, 30, False), (1, 30, False)]
    vector.close()


@pytest.mark.parametrize("told", [True, False])
def test_a_lost_life_ends_the_episode_for_the_learner_alone(told):
    vector = games(max_t=None, num=1, life_loss_info=told, repeat_action_probability=0.0)
    fires = [vector.step(np.array([1])) for _ in range(400)]
    overs = [t for t, step in enumerate(fires) if step.ended]
    terminated = [t for t, step in enumerate(fires) if step.terminated.any()]
    assert overs, "five lives are lost within 400 steps by firing alone"
    assert len([t for t in terminated if t <= overs[0]]) == (5 if told else 1)
    assert fires[overs[0]].ended[0].length == overs[0] + 1
    vector.close()


def test_a_game_without_lives_is_one_episode():
    vector = games("ALE/Pong-v5", num=1, max_t=None, life_loss_info=True)
    steps = play(vector, 400)
    assert sum(step.reward.sum() for step in steps) < 0
    assert not any(step.terminated.any() for step in steps)
    vector.close()


def test_one_game_can_be_drawn():
    env = make_env(EnvSpec(name="ALE/Pong-v5", kwargs=SMALL), render_mode="rgb_array")
    obs, _ = env.reset(seed=1)
    assert obs.shape == (4, 21, 21)
    drawn = np.asarray(env.render())
    assert drawn.shape == (420, 420, 3)
    assert drawn.dtype == np.uint8
    env.close()


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"frameskp": 4}, "did you mean frameskip?"),
        ({"frameskip": 0}, "a whole number from 1 to 1000"),
        ({"frameskip": True}, "a whole number from 1 to 1000"),
        ({"repeat_action_probability": 1.5}, "a number from 0 to 1"),
        ({"grayscale": 1}, "true or false"),
        ({"reward_clipping": True}, "env.clip_reward=1"),
        ({"episodic_life": True}, "life_loss_info=true"),
    ],
)
def test_settings_are_checked(kwargs, says):
    with pytest.raises(UsageError) as refused:
        make_env(EnvSpec(name="ALE/Pong-v5", kwargs=kwargs))
    assert says in str(refused.value)


def test_an_unknown_game_gets_the_nearest():
    with pytest.raises(UsageError, match="ALE/Pong-v5"):
        make_env(EnvSpec(name="ALE/Pongg-v5"))
