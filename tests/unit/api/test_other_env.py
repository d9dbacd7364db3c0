"""A policy plays in another environment: its own normalisation, their rewards, and no mark on the run's own score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import operant
from operant.api.other_env import in_environment
from operant.cli.app import run as command
from operant.engines import engine_of
from operant.errors import UsageError
from operant.run.layout import EVALUATIONS_FILE, RUN_FILE
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.stored import stored
from tests.unit.api.conftest import META, PENDULUM, PPO, Trained

# CartPole-v0 is CartPole-v1 but for its time limit, and Gymnasium would have it forgotten.
pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
SLOW = pytest.mark.slow  # one kind more of what another case tries
SCALED = {"normalize_obs": True, "normalize_reward": True, "reward_scale": 0.1, "clip_reward": 1.0}


class Narrow(gym.Env):
    """Pendulum's spaces, but for the bounds of its actions."""

    observation_space = Box(-8, 8, (3,), np.float32)
    action_space = Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action: np.ndarray):
        return np.zeros(3, np.float32), 0.0, False, True, {}


class Shifted(gym.Wrapper):
    """CartPole whose two actions are called 3 and 4."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(gym.make("CartPole-v1", **settings))
        self.action_space = Discrete(2, start=3)

    def step(self, action: Any):
        assert action in (3, 4)
        return self.env.step(int(action) - 3)


def path(kind: type) -> str:
    return f"{__name__}.{kind.__name__}"


def played(session: operant.Session, env: gym.Env, seeds: range) -> list[float]:
    """The returns of the policy's own actions in Gymnasium's environment, as its rewards are."""
    policy, scores = session.policy(), []
    for seed in seeds:
        policy.reset()
        obs, _ = env.reset(seed=seed)
        score, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(policy.act(np.asarray(obs, np.float32)))
            score, over = score + float(reward), terminated or truncated
        scores.append(score)
    return scores


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> operant.Session:
    """A compiled policy of Pendulum that learnt from rewards on another scale."""
    pytest.importorskip("jax")
    spec = {"name": "scaled", "engine": "jax", "env": {**PENDULUM, **SCALED}, "agent": {"algorithm": PPO}, "meta": META}
    return operant.train(spec, root=tmp_path_factory.mktemp("runs"), progress=False).sessions[0]


def test_a_compiled_policy_plays_in_gymnasium_by_its_own_statistics_for_rewards_as_they_are(scaled: operant.Session):
    found = operant.evaluate(scaled, env="Pendulum-v1", episodes=3, seed=2_000_000).sessions[0]
    scores = sorted(episode.score or 0.0 for episode in found.episodes)
    assert scores == pytest.approx(sorted(played(scaled, gym.make("Pendulum-v1"), range(2_000_000, 2_000_003))), 1e-3)
    assert {episode.length for episode in found.episodes} == {200}
    assert max(scores) < -100, "Pendulum's own rewards are of this size"


@pytest.mark.parametrize(
    "kind", ["ppo", "jax-ppo", *(pytest.param(kind, marks=SLOW) for kind in ("ppo-gru", "dqn", "jax-dqn"))]
)
def test_every_kind_of_policy_plays_as_it_would_by_itself(trained: Trained, kind: str):
    session = trained(kind)
    found = operant.evaluate(session, env="CartPole-v0", episodes=2, seed=3_000_000).sessions[0]
    assert {episode.env for episode in found.episodes} == {"CartPole-v0"}
    assert sorted(found.returns) == sorted(played(session, gym.make("CartPole-v0"), range(3_000_000, 3_000_002)))


@pytest.mark.parametrize("kind", ["dqn", pytest.param("jax-dqn", marks=SLOW)])
def test_actions_are_called_as_the_other_environment_calls_them(trained: Trained, kind: str):
    found = operant.evaluate(trained(kind), env=path(Shifted), episodes=2, seed=3_000_000).sessions[0]
    plain = gym.make("CartPole-v1")
    assert sorted(found.returns) == sorted(played(trained(kind), plain, range(3_000_000, 3_000_002)))


def test_episodes_elsewhere_are_labelled_and_leave_the_runs_own_score_alone(trained: Trained):
    session = trained("random")
    before = (session.score, session.record().rows)
    own = operant.evaluate(session, episodes=2).sessions[0]
    other = operant.evaluate(session, env="CartPole-v0", episodes=2).sessions[0]
    assert (own.env, own.as_dict()["env"]) == (None, None)
    assert (other.env, other.as_dict()["env"]) == ("CartPole-v0", "CartPole-v0")
    rows = [json.loads(line) for line in (session.path / EVALUATIONS_FILE).read_text().splitlines()][-4:]
    assert [(row["env"], row["split"]) for row in rows] == [("CartPole-v1", "eval")] * 2 + [
        ("CartPole-v0", "transfer")
    ] * 2
    assert (session.score, session.record().rows) == before
    assert not list(session.episodes("transfer"))
    assert operant.verify(session, progress=False).equal


@pytest.mark.parametrize(
    ("kind", "env", "why"),
    [
        ("ppo", "Pendulum-v1", r"its observations are numbers of shape \(3,\), not numbers of shape \(4,\)"),
        ("jax-ppo", "Acrobot-v1", r"its observations are numbers of shape \(6,\), not numbers of shape \(4,\)"),
        pytest.param(
            "jax-sac", path(Narrow), "its actions are real ones .* between -1 and 1, not .* -2 and 2", marks=SLOW
        ),
        ("sac", path(Narrow), r"its actions are real ones of shape \(1,\) between -1 and 1, not .* -2 and 2"),
        ("ppo", "CartPole-v7", "no environment is called 'CartPole-v7'"),
        ("ppo-continuous", "HalfCheetah-v2", "The mujoco v2 and v3 based environments have been moved"),
        ("jax-ppo", "no_such_module:Maze", "there is no module 'no_such_module'"),
        ("ppo", "mjx/HalfCheetah-v5", "it is compiled by the jax engine, and the policy is of the torch engine"),
        pytest.param(
            "jax-lstm", "operant.envs.functional.classic:Pendulum", "it is compiled, and lstm is recurrent", marks=SLOW
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line_with_both_names(trained: Trained, kind: str, env: str, why: str):
    session = trained(kind)
    file = session.path / EVALUATIONS_FILE
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(UsageError, match=why) as told:
        operant.evaluate(session, env=env)
    assert told.value.cause.startswith(f"a policy of {session.spec.env.name} cannot play in {env}: ")
    assert "\n" not in told.value.cause
    assert (file.read_bytes() if file.exists() else None) == before


def run_of(folder: Path, spec: dict[str, Any]) -> Run:
    data = Spec.model_validate(spec).model_dump(mode="json")
    return Run.create(folder / "run", name="run", spec=data, seed=0, session=0, threads=1)


def test_an_environment_that_masks_is_refused_where_the_algorithm_does_not_listen(tmp_path: Path):
    memory = {"algorithm": {"name": "sac"}, "memory": {"name": "replay"}}
    run = run_of(tmp_path, {"env": {"name": "tests.unit.envs.vector.test_masks.Corridor"}, "agent": memory})
    with pytest.raises(UsageError, match="it says which actions are legal, and sac does not listen"):
        in_environment(run, "tests.unit.envs.vector.test_masks.Corridor")


def test_a_language_run_plays_nowhere(tmp_path: Path):
    run = run_of(tmp_path, {"env": {"name": "arithmetic"}, "agent": {"algorithm": {"name": "grpo"}}})
    with pytest.raises(UsageError, match=r"policy of arithmetic cannot play in CartPole-v1: it is a language model"):
        in_environment(run, "CartPole-v1")


def test_settings_of_the_environment_stay_behind_and_the_engine_does_not_change(tmp_path: Path):
    pytest.importorskip("mujoco")
    env = {"name": "mjx/HalfCheetah-v5", "kwargs": {"iterations": 3}, "max_t": 100, "normalize_obs": True}
    run = run_of(tmp_path, {"env": env, "agent": {"algorithm": {"name": "ppo"}}})
    there = stored(in_environment(run, "HalfCheetah-v5").spec)
    assert (there.engine_name, there.env.name, there.env.kwargs, there.env.max_t) == ("jax", "HalfCheetah-v5", {}, None)
    assert there.env.normalize_obs
    assert engine_of(there) is engine_of(stored(run.spec))
    assert stored(run.spec).env.name == "mjx/HalfCheetah-v5"


def test_a_policy_of_mjx_plays_in_gymnasium_without_mjx(tmp_path: Path):
    """Its weights have the shapes of one that was trained in Gymnasium, which stands in for it here."""
    pytest.importorskip("mujoco")
    pytest.importorskip("jax")
    env = {"name": "InvertedPendulum-v5", "num_envs": 2, "max_frame": 256, "normalize_obs": True}
    agent = {"algorithm": {**PPO, "time_horizon": 32, "minibatch_size": 32}}
    spec = {"name": "pole", "engine": "jax", "env": env, "agent": agent, "meta": {**META, "final_episodes": 2}}
    session = operant.train(spec, root=tmp_path, progress=False).sessions[0]
    expected = operant.evaluate(session, episodes=2).sessions[0].returns
    document = json.loads((session.path / RUN_FILE).read_text())
    document["spec"]["env"]["name"] = "mjx/InvertedPendulum-v5"
    (session.path / RUN_FILE).write_text(json.dumps(document))
    found = operant.evaluate(session, env="InvertedPendulum-v5", episodes=2).sessions[0]
    assert found.returns == expected
    assert found.env == "InvertedPendulum-v5"


def test_the_command_says_where_it_played_and_what_does_not_fit(
    trained: Trained, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    session = str(trained("jax-ppo").path)
    assert command(["eval", session, "--env", "CartPole-v0", "--episodes", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("session_0 at frame 1,024 in CartPole-v0: ")
    assert second.startswith("score ")
    assert "mean greedy return in CartPole-v0 over 1 session, 2 episodes each" in second
    assert command(["eval", session, "--env", "CartPole-v0", "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env"] == "CartPole-v0"
    for verb in ("eval", "watch"):
        assert command([verb, session, "--env", "Pendulum-v1"]) == 2
        said = capsys.readouterr()
        assert "a policy of CartPole-v1 cannot play in Pendulum-v1: its observations are" in said.err
        assert "Traceback" not in said.err + said.out
    assert command(["eval", session, "--env", "CartPole-v0", "--tasks", "gsm8k"]) == 2
    assert "--env has no effect with --tasks" in capsys.readouterr().err


def test_a_policy_is_watched_in_another_environment(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    video = tmp_path / "cart.gif"
    assert command(["watch", str(trained("jax-ppo").path), "--env", "CartPole-v0", "--out", str(video), "--json"]) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert (episode["env"], episode["split"]) == ("CartPole-v0", "watch")
    assert video.read_bytes().startswith(b"GIF")


def test_a_seed_of_training_is_refused_elsewhere_too(trained: Trained):
    session = trained("random")
    seed = next(episode.seed for episode in session.episodes("train"))
    with pytest.raises(UsageError, match="is that of a training episode"):
        operant.evaluate(session, env="CartPole-v0", episodes=1, seed=seed)
