"""A session's policy acts by hand as it does in evaluation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import operant
from operant.errors import UsageError
from operant.policy.array_policy import ArrayPolicy
from tests.unit.api.conftest import Trained


def play(session: operant.Session, policy: Any, seed: int) -> float:
    """The return of one episode played through Gymnasium."""
    env = gym.make(session.spec.env.name)
    obs, _ = env.reset(seed=seed)
    policy.reset()
    score, over = 0.0, False
    while not over:
        obs, reward, terminated, truncated, _ = env.step(policy.act(obs))
        score, over = score + float(reward), terminated or truncated
    env.close()
    return score


def slow(*kinds: str) -> list[Any]:
    """One kind more of what another test tries."""
    return [pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


@pytest.mark.parametrize("kind", ["ppo", *slow("ppo-continuous"), "sac", "dqn", "ppo-gru", *slow("ppo-lstm")])
def test_an_episode_played_by_hand_has_the_score_of_evaluation(trained: Trained, kind: str):
    session = trained(kind)
    policy = session.policy()
    for seed in (7, 8):
        evaluation = operant.evaluate(session, episodes=1, seed=seed)
        assert play(session, policy, seed) == evaluation.sessions[0].score


@pytest.mark.parametrize("kind", ["ppo", "dqn", "ppo-gru"])
def test_single_observations_choose_as_a_batch_of_evaluation_does(trained: Trained, kind: str):
    session = trained(kind)
    evaluation = operant.evaluate(session, episodes=4, seed=20).sessions[0]
    scores = {episode.seed or 0: episode.score for episode in evaluation.episodes}
    assert {seed: play(session, session.policy(), seed) for seed in scores} == scores


@pytest.mark.parametrize("kind", ["ppo-gru", *slow("ppo-lstm")])
def test_a_recurrent_policy_remembers_until_it_is_reset(trained: Trained, kind: str):
    policy = trained(kind).policy()
    assert isinstance(policy, ArrayPolicy)
    obs = np.random.default_rng(0).normal(size=(3, *policy.obs_shape)).astype(np.float32)
    first = policy.outputs(obs, np.ones(3, bool))
    second = policy.outputs(obs, np.array([False, False, True]))
    assert not np.allclose(first[:2], second[:2])
    assert np.allclose(first[2], second[2], atol=1e-6)
    policy.reset()
    policy.act(obs)
    with pytest.raises(UsageError, match="hidden states of 3 rows, and was given 2"):
        policy.act(obs[:2])
    policy.reset()
    policy.act(obs[:2])
    policy.reset([True, False])


@pytest.mark.parametrize("kind", ["ppo", "sac", "jax-ppo", "jax-sac"])
def test_one_observation_or_a_batch_in_the_environments_own_actions(trained: Trained, kind: str):
    session = trained(kind)
    policy: Any = session.policy()
    env = gym.make(session.spec.env.name)
    obs = np.stack([env.observation_space.sample() for _ in range(5)])
    many = policy.act(obs)
    assert many.dtype == env.action_space.dtype
    assert many.shape == (5, *(env.action_space.shape or ()))
    for row, action in zip(obs, many, strict=True):
        assert env.action_space.contains(policy.act(row))
        assert policy.act(row) == pytest.approx(action, abs=1e-5)
    with pytest.raises(UsageError, match="observations of shape"):
        policy.act(obs[..., :2])


@pytest.mark.parametrize("kind", ["ppo", "sac", "dqn", "jax-ppo", "jax-sac", "random"])
def test_drawn_actions_repeat_with_their_seed(trained: Trained, kind: str):
    policy: Any = trained(kind).policy()
    obs = np.zeros((64, *policy.obs_shape), np.float32)

    def drawn(seed: int) -> list[np.ndarray]:
        policy.seed(seed)
        return [policy.act(obs, deterministic=False) for _ in range(2)]

    assert np.array_equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4)) or kind == "dqn"
    first, second = drawn(3)
    assert not np.array_equal(first, second) or kind == "dqn"


@pytest.mark.parametrize("kind", ["jax-ppo", "jax-sac", *slow("jax-dqn")])
def test_jax_policies_act_as_their_learner_does(trained: Trained, kind: str):
    import jax
    import jax.numpy as jnp

    from operant.engines.jax import distributions
    from operant.engines.jax.evaluation import load_policy
    from operant.engines.jax.learner import GREEDY

    session = trained(kind)
    policy: Any = session.policy()
    learner, weights = load_policy(session.spec, session.checkpoint().path)
    for obs in policy.record(20, 4, 0).obs:
        action = learner.act(
            weights, learner.hyper(session.spec), jnp.asarray(obs), None, jax.random.key(0), jnp.int32(GREEDY)
        )
        expected = np.asarray(distributions.to_env_action(learner.env.actions, action))
        assert policy.act(obs) == pytest.approx(expected, abs=1e-6)


def test_a_mask_forbids_actions(trained: Trained):
    policy: Any = trained("ppo").policy()
    obs = np.random.default_rng(0).normal(size=(16, 4))
    assert set(policy.act(obs)) <= {0, 1}
    assert not policy.act(obs, mask=[[True, False]] * 16).any()
    assert policy.act(obs[0], mask=[False, True]) == 1


def test_the_policy_of_a_trial_is_that_of_its_best_session(trained: Trained):
    session = trained("ppo")
    trial = operant.open(session.path.parent)
    assert isinstance(trial, operant.Trial)
    obs = np.random.default_rng(0).normal(size=(64, 4))
    assert np.array_equal(trial.policy().act(obs), session.policy("best").act(obs))


def test_a_language_policy_answers_prompts(tmp_path: Any):
    pytest.importorskip("transformers")
    text = {"arguments": {"style": "bare", "letters": 2}, "max_tokens": 4}
    model = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 48}}
    spec = {
        "name": "words",
        "env": {"name": "copy", "max_frame": 32, "text": text},
        "agent": {"algorithm": {"name": "grpo", "group_size": 4, "batch_size": 16}, "model": model},
        "meta": {"max_session": 1, "eval_episodes": 2, "final_episodes": 4},
    }
    session = operant.train(spec, root=tmp_path, progress=False).sessions[0]
    policy: Any = session.policy()  # of text: `act` also takes stop strings
    played = list(operant.evaluate(session, episodes=4).sessions[0].episodes)
    for episode in played:
        asked, answered = episode.turns
        assert policy.act(asked.text, stop=["\n"]) == answered.text
        assert policy.act([{"role": "user", "content": asked.text}], stop=["\n"]) == answered.text
    drawn = [policy.act("ab", deterministic=False) for _ in range(4)]
    assert len(set(drawn)) > 1
    policy.seed(0)
    assert [policy.act("ab", deterministic=False) for _ in range(4)] == drawn
    with pytest.raises(UsageError, match="the model's context is 48"):
        policy.act("a" * 60)
    with pytest.raises(UsageError, match="a Hugging Face folder already"):
        operant.export(session, to="onnx", out=tmp_path / "x.onnx")
