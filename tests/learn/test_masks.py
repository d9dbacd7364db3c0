"""Every learner that takes masks keeps to them: in training, in evaluation and in random play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.torch import validate
from operant.engines.torch.learners import build_learner
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.envs.vector.evaluation import play, random_return
from operant.run.seeding import Seeds
from operant.spec.load import load
from operant.spec.schema import Spec
from operant.spec.settings.sections import EnvSpec

EPISODES, FIRST_SEED = 40, 900
NET = {"hidden": [32], "optimizer": {"lr": 3e-3}}
PPO = {"name": "ppo", "gamma": 0.5, "time_horizon": 32, "minibatch_size": 64}
EPSILON = {"start": 1.0, "end": 0.1, "frames": 2000}
LEARNERS: dict[str, tuple[dict[str, Any], int]] = {
    "ppo": (PPO, 12_000),
    "a2c": ({"name": "a2c", "gamma": 0.5, "training_frequency": 8}, 20_000),
    "reinforce": ({"name": "reinforce", "gamma": 0.5, "training_frequency": 8}, 24_000),
    "dqn": ({"name": "dqn", "gamma": 0.5, "training_start": 100, "target_update": 50, "epsilon": EPSILON}, 6_000),
    "dqn-n-step": (
        {
            "name": "dqn",
            "gamma": 0.5,
            "n_step": 2,
            "double": False,
            "training_start": 100,
            "target_update": 50,
            "epsilon": EPSILON,
        },
        6_000,
    ),
    "sarsa": ({"name": "sarsa", "gamma": 0.5, "training_frequency": 4, "epsilon": EPSILON}, 12_000),
}
OFTEN = ("ppo", "reinforce", "dqn")
MASKED = EnvSpec(name="operant/Masked-v0", num_envs=4)


def best(obs: np.ndarray, mask: np.ndarray | None, begun: np.ndarray) -> np.ndarray:
    """The solution of `operant/Masked-v0`: the highest legal value in sight."""
    assert mask is not None
    return np.where(mask, obs, -1).argmax(-1)


def mean_score(act: Any) -> float:
    return float(np.mean([over.score for over in play(MASKED, act, EPISODES, FIRST_SEED)]))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in LEARNERS]
)
def test_learns_to_choose_the_best_legal_action_and_never_an_illegal_one(name: str):
    torch.set_num_threads(1)
    algorithm, frames = LEARNERS[name]
    env = {"name": MASKED.name, "num_envs": 4, "max_frame": frames}
    spec = Spec.model_validate({"env": env, "agent": {"algorithm": algorithm, "net": NET}})
    learner = build_learner(spec, Seeds(1), torch.device("cpu"))
    lengths = set()
    while learner.tracker.frames < frames:
        lengths |= {over.length for over in learner.iterate()}
    assert lengths == {10}, "an illegal action ended an episode"
    assert mean_score(learner.actor.greedy) >= 0.97 * mean_score(best)


def test_without_masks_the_problem_cannot_be_solved():
    assert mean_score(lambda obs, mask, begun: obs.argmax(-1)) < 0


def test_random_play_is_legal_too():
    assert random_return(MASKED) == pytest.approx(5.0, abs=0.5)


def test_sampled_play_is_legal_too():
    spec = Spec.model_validate({"env": {"name": MASKED.name, "max_frame": 4096}, "agent": {"algorithm": PPO}})
    learner, rng = build_learner(spec, Seeds(1), torch.device("cpu")), np.random.default_rng(0)
    played = play(MASKED, lambda obs, mask, begun: learner.actor.sample(obs, rng, mask, begun), 20, FIRST_SEED)
    assert {over.length for over in played} == {10}


def test_masks_come_back_with_the_rest_of_a_checkpoint():
    seeds, rng = Seeds(3), np.random.default_rng(0)
    vectors = [AutoresetVectorEnv(MASKED, 3, lambda i, k: seeds.integer("env", i, k)) for _ in range(2)]
    for _ in range(17):
        assert vectors[0].mask is not None
        playing = rng.random(3) < 0.7
        vectors[0].step((vectors[0].mask.cumsum(-1) == 1).argmax(-1), playing)
    vectors[1].restore(vectors[0].state())
    np.testing.assert_array_equal(vectors[0].mask, vectors[1].mask)
    np.testing.assert_array_equal(vectors[0].begun, vectors[1].begun)


@pytest.mark.slow
def test_the_example_of_the_documentation_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "masks.md").read_text()
    (tmp_path / "doors.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = load("ppo_cartpole", overrides=["env.name=doors.Doors", "env.max_frame=4096"]).spec
    validate(spec)
    learner = build_learner(spec, Seeds(0), torch.device("cpu"))
    assert {over.length for over in learner.iterate()} == {10}
