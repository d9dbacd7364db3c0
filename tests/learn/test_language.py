"""GRPO raises the reward on problems that it has never seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from operant.engines import language
from operant.run.run import Run
from operant.spec.schema import Spec

SPEC = {
    "name": "grpo",
    "env": {
        "name": "copy",
        "max_frame": 9600,
        "text": {"arguments": {"style": "bare", "letters": 3, "alphabet": "abcde"}},
    },
    "agent": {
        "algorithm": {
            "name": "grpo",
            "group_size": 8,
            "batch_size": 64,
            "entropy_coef": 0.01,
            "warmup": {"updates": 14},
        },
        "model": {
            "source": "tiny",
            "tiny": {"layers": 2, "width": 128, "heads": 4, "context": 32},
            "optimizer": {"lr": 5e-4},
        },
    },
    "meta": {"log_frequency": 640, "eval_frequency": 9600, "save_frequency": 9600, "eval_episodes": 50},
}

GUESSING = {
    "name": "guess",
    "max_frame": 6400,
    "text": {"arguments": {"style": "bare", "numbers": 4, "turns": 2}, "dialogue": {"concurrency": 128}},
}
PATIENT = {
    "name": "grpo",
    "group_size": 8,
    "batch_size": 128,
    "entropy_coef": 0.01,
    "warmup": {"updates": 30, "problems": 200},
}


def test_a_tiny_model_learns_to_copy(tmp_path: Path):
    spec = Spec.model_validate(SPEC).model_dump(mode="json")
    run = Run.create(tmp_path / "run", name="grpo", spec=spec, seed=0, session=0, threads=1)
    language.train(run)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["eval/score"] < 0.5
    assert rows[-1]["final/score"] > rows[0]["eval/score"] + 0.25
    assert max(abs(row.get("mismatch/kl", 0.0)) for row in rows) < 1e-6


@pytest.mark.slow
def test_a_tiny_model_learns_a_dialogue(tmp_path: Path):
    changes = {"env": {**SPEC["env"], **GUESSING}, "agent": {**SPEC["agent"], "algorithm": PATIENT}}
    spec = Spec.model_validate({**SPEC, **changes}).model_dump(mode="json")
    run = Run.create(tmp_path / "run", name="grpo", spec=spec, seed=0, session=0, threads=1)
    language.train(run)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    returns = [row["train/return"] for row in rows if "train/return" in row]
    assert sum(returns[-3:]) / 3 > sum(returns[:3]) / 3 + 0.05
    episodes = [json.loads(line) for line in (run.path / "episodes.jsonl").read_text().splitlines()]
    assert {turn["role"] for turn in episodes[-1]["turns"]} == {"user", "assistant"}
    assert {len(row["turns"]) for row in episodes} == {3, 5}
