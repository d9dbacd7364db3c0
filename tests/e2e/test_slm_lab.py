"""An SLM-Lab file and its native conversion train with the real engine, and alike."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "tests" / "unit" / "spec" / "dialects" / "slm" / "files" / "ppo_cartpole.json"
SMALL = ("-s", "env.max_frame=4096", "-s", "meta.final_episodes=3", "--sessions", "1", "--plain")


def say(folder: Path, *words: str) -> str:
    """What the command printed; it must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "operant", *words]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(folder: Path) -> list[dict[str, float]]:
    """The metric rows of a run, without what depends on the clock."""
    (path,) = folder.glob("trial_000/session_0/metrics.jsonl")
    timing = ("seconds", "perf/")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.startswith(timing)} for row in found]


@pytest.mark.slow
def test_a_file_and_its_conversion_train_alike(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path)
    say(tmp_path, "convert", FILE.name, "--out", "native.yaml")
    say(tmp_path, "train", FILE.name, "ppo_cartpole", *SMALL, "--out", "as_it_is")
    say(tmp_path, "train", "native.yaml", *SMALL, "--out", "converted")
    assert rows(tmp_path / "as_it_is") == rows(tmp_path / "converted")
    assert rows(tmp_path / "as_it_is")[-1]["frames"] == 4096
