"""Returns beside a peer's are of the same episodes, and what they are called better is what the numbers bear out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from benchmarks import returns_sb3
from benchmarks.matched import CELLS, EXPLORATION, OPERANT, SB3, operant_settings
from benchmarks.same_episodes import FIRST_SEED, peer_return
from operant.envs.vector.evaluation import play
from operant.spec.schema import Spec
from operant.spec.settings.sections import EnvSpec


def test_a_peer_plays_the_very_episodes_that_operant_is_judged_on():
    def lean(obs: np.ndarray, *_: Any) -> np.ndarray:
        return (obs[..., 2] > 0).astype(np.int64)

    ours = [over.score for over in play(EnvSpec(name="CartPole-v1"), lean, 20, FIRST_SEED)]
    theirs = peer_return(gym.make("CartPole-v1"), lambda obs: int(lean(obs)), 20)
    assert len(set(ours)) > 1, "episodes that all last equally long could not be told apart"
    assert theirs == np.mean(ours)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_a_sound_spec_and_explores_as_its_peer_does(name: str):
    cell = CELLS[name]
    settings = operant_settings(name, cell.learning_steps)
    env = {"name": cell.env, "num_envs": cell.envs, "max_frame": cell.learning_steps, **settings.get("env", {})}
    spec = Spec.model_validate({"name": name, "env": env, "agent": settings["agent"]})
    if cell.algorithm == "dqn":
        explored = SB3[name]["exploration_fraction"] * cell.learning_steps
        assert spec.agent.algorithm.epsilon.frames == pytest.approx(explored)  # pyright: ignore[reportAttributeAccessIssue]
    assert (cell.algorithm == "dqn") == (name in EXPLORATION)
    assert set(OPERANT) == set(CELLS)
    assert set(SB3) == {name for name, cell in CELLS.items() if {"sb3", "sbx"} & {*cell.peers}}


def row(library: str, seed: int, greedy: float, cell: str = "sac-pendulum") -> dict[str, Any]:
    return {"library": library, "cell": cell, "seed": seed, "greedy": greedy, "sampled": greedy}


def test_what_is_missing_is_run_seed_by_seed(tmp_path: Path):
    kept = tmp_path / "rows.jsonl"
    kept.write_text(json.dumps(row("operant", 1, 1.0)) + "\n")
    assert returns_sb3.missing(["sac-pendulum"], 2, returns_sb3.read(kept)) == [
        ("sb3", "sac-pendulum", 1),
        ("operant", "sac-pendulum", 2),
        ("sb3", "sac-pendulum", 2),
    ]
    assert len(returns_sb3.missing(["sac-pendulum"], 2, returns_sb3.read(tmp_path / "none.jsonl"))) == 4


@pytest.mark.parametrize(
    ("lead", "words"), [(100.0, "Operant better"), (-100.0, "SB3 better"), (0.0, "no clear difference")]
)
def test_the_verdict_names_who_is_better(lead: float, words: str):
    rows = [row("operant", k, k + lead) for k in range(8)] + [row("sb3", k, k) for k in range(8)]
    assert returns_sb3.compared(rows, "sac-pendulum", "greedy")[-1] == words
    assert returns_sb3.report(rows, ["sac-pendulum"]).count(f"  {words}\n") == 1


def test_a_cell_without_runs_is_said_to_have_none():
    assert returns_sb3.report([row("operant", 1, 1.0)], ["sac-pendulum"]).count("not run") == 2
