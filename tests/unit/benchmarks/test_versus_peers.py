"""Peers run where they are installed; those that are not are named with what would help."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers, versus_peers
from benchmarks.matched import CELLS, CLEANRL
from benchmarks.run_cleanrl import JAX_FILES, TORCH_FILES
from benchmarks.versus_peers import Comparison, Library, lacking, measure, pair, summarise_all

SCRIPT = """
import sys
from dataclasses import dataclass
import gymnasium as gym
import torch

class Agent:
    def actor(self, row):
        return torch.stack([-row[:, 2], row[:, 2]], 1)
    def get_action_and_value(self, row):
        return self.actor(row).argmax(1), None, None, None

if __name__ == "__main__":
    flags = sys.argv[1:]
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")])
    envs.reset(seed=1)
    agent = Agent()
    envs.close()
"""


def row(library: str, steps: int, cpu: float) -> dict[str, Any]:
    clock = {"steps": steps, "seconds": 2 * cpu, "cpu_seconds": cpu}
    return {"cell": "sac-pendulum", "library": library, "seed": 1, **clock, "greedy": -150.0, "sampled": -160.0}


def test_the_steady_rate_is_that_of_the_steps_beyond_the_short_run():
    summary = summarise_all([row("operant", 3000, 40.0)], [row("operant", 1000, 30.0)])
    assert summary["sac-pendulum"]["operant"][versus_peers.STEADY] == 200.0
    assert summary["sac-pendulum"]["operant"]["steps_per_cpu_second"] == 75.0


def test_a_peer_that_cannot_run_says_what_is_missing(tmp_path: Path):
    assert lacking(Library("operant")) == ""
    assert lacking(Library("cleanrl")) == "no checkout: --cleanrl DIR"
    assert lacking(Library("cleanrl", checkout=tmp_path)) == f"{tmp_path} has no folder cleanrl"
    assert lacking(Library("rejax", python=str(tmp_path / "none"))).endswith("No such file or directory")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # no installed packages
    bare.chmod(0o755)
    assert lacking(Library("rejax", python=str(bare))) == "not installed (rejax): --python rejax=PYTHON"


def test_a_python_is_given_by_the_name_of_a_peer():
    assert pair("sbx=/envs/sbx/bin/python") == ("sbx", "/envs/sbx/bin/python")
    for wrong in ("sbx", "sbx=", "nobody=/python"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not PEER=PYTHON"):
            pair(wrong)


def test_a_peer_that_fails_is_left_out_of_the_cell_and_the_result_says_why(tmp_path: Path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ImportError: no wheels' >&2\nexit 1\n")
    broken.chmod(0o755)
    out = tmp_path / "out.json"
    comparison = Comparison(1, out)
    comparison.run(Library("sbx", str(broken)), "sac-pendulum", 1, None, None)
    assert json.loads(out.read_text())["left_out"] == {"sbx in sac-pendulum": "ImportError: no wheels"}
    with pytest.raises(SystemExit, match="no wheels"):
        comparison.run(Library("operant", str(broken)), "sac-pendulum", 1, None, None)


def test_every_cell_of_cleanrl_has_a_file_and_flags():
    for name, cell in CELLS.items():
        assert ("cleanrl" in cell.peers) == (name in CLEANRL)
        assert "cleanrl" not in cell.peers or cell.algorithm in TORCH_FILES
        assert "cleanrl-jax" not in cell.peers or cell.algorithm in JAX_FILES


def test_a_file_of_cleanrl_is_run_by_its_flags_timed_and_judged(tmp_path: Path):
    (tmp_path / "cleanrl").mkdir()
    (tmp_path / "cleanrl" / "ppo.py").write_text(SCRIPT)
    library = Library("cleanrl", checkout=tmp_path)
    found = measure(library, "ppo-cartpole", 3, 1, steps=512, episodes=2)
    assert found["steps"] == 512
    assert 0 < found["seconds"] < 5
    assert found["greedy"] == found["sampled"] > 20, "leaning with the pole is better than chance"


def test_the_table_names_what_was_left_out(tmp_path: Path):
    rows, shorts = [row("operant", 3000, 40.0), row("sbx", 3000, 50.0)], [row("operant", 1000, 30.0)]
    summary = summarise_all(rows, [*shorts, row("sbx", 1000, 30.0)])
    (tmp_path / peers.ALL_PEERS).write_text(json.dumps({"summary": summary, "left_out": {"rlox": "no wheel"}}))
    shown = peers.versus(tmp_path)
    assert "| `sac-pendulum` | SBX | 100 | 2.00 |  |  | -150.0 | -160.0 |" in shown
    assert shown.endswith("\nLeft out: rlox (no wheel).\n")
