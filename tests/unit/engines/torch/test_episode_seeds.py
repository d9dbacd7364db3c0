"""No policy is scored on an episode that it was trained on, whatever the seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from operant.engines import torch as torch_engine
from operant.engines.torch.learners import build_learner
from operant.errors import UsageError
from operant.run.checkpoint import newest_good
from operant.run.layout import EPISODES_FILE
from operant.run.run import Run
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import with_learner

SESSION = 5
# The seed that the first episode of environment 1 is hashed to: evaluation begins just there.
HASHED = Seeds(SESSION).integer("env", 1, 0)
CONTINUOUS = ("sac", "td3", "crossq")


def spec_of(algorithm: str, **meta: Any) -> Spec:
    env = {"name": "Pendulum-v1" if algorithm in CONTINUOUS else "CartPole-v1", "num_envs": 2, "max_frame": 6000}
    frequencies = {"log_frequency": 100, "eval_frequency": 100, "save_frequency": 100}
    counts = {"eval_episodes": 2, "final_episodes": 3}
    return Spec.model_validate(
        {"env": env, "agent": {"algorithm": {"name": algorithm}}, "meta": {**frequencies, **counts, **meta}}
    )


@pytest.mark.parametrize("algorithm", with_learner("torch"))
def test_every_learner_leaves_evaluation_its_seeds(algorithm: str):
    learner: Any = build_learner(spec_of(algorithm, eval_seed=HASHED), Seeds(SESSION), torch.device("cpu"))
    vector = learner.collector.vector if hasattr(learner, "collector") else learner.vector
    assert vector._episode_seed(0, 0) == Seeds(SESSION).integer("env", 0, 0)
    assert vector._episode_seed(1, 0) not in range(HASHED, HASHED + 1000)


@pytest.fixture
def trained(tmp_path: Path) -> Run:
    spec = spec_of("random", eval_seed=HASHED).model_dump(mode="json")
    run = Run.create(tmp_path / "run", name="run", spec=spec, seed=SESSION, session=0, threads=1)
    torch_engine.train(run)
    return run


def test_a_run_is_never_scored_on_a_seed_it_was_trained_on(trained: Run):
    rows = [json.loads(line) for line in (trained.path / EPISODES_FILE).read_text().splitlines()]
    splits = {split: {row["seed"] for row in rows if row["split"] == split} for split in ("train", "eval", "final")}
    assert len(splits["train"]) > 10
    assert HASHED in splits["eval"] & splits["final"]
    assert not splits["train"] & (splits["eval"] | splits["final"])


def test_eval_refuses_a_seed_of_training_and_says_whose_it_was(trained: Run):
    checkpoint = newest_good(trained.checkpoints)[0]
    assert checkpoint is not None
    second = Seeds(SESSION).integer("env", 0, 2)
    with pytest.raises(UsageError, match="number 2 of environment 0") as refusal:
        list(torch_engine.evaluate(trained, checkpoint, 3, second - 1))
    assert f"--seed {HASHED}" in str(refusal.value.remedy)
    assert len(list(torch_engine.evaluate(trained, checkpoint, 2, second + 1))) == 2
    assert [episode.seed for episode in torch_engine.evaluate(trained, checkpoint, 2, HASHED)] == [HASHED, HASHED + 1]
