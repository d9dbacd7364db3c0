"""What a newcomer does, with the real engine and real processes, from the first run to a video of the agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.warm import operant_warm

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"}
SMALL = ("-s", "env.max_frame=6000", "-s", "meta.save_frequency=2000", "-s", "meta.final_episodes=5")


def operant(folder: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "operant", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True)


def say(folder: Path, *words: str) -> str:
    """What the command printed; it must succeed."""
    process = operant(folder, *words)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return out


def say_warm(folder: Path, *words: str) -> str:
    """The same in a process that is forked from one that has imported torch."""
    done = operant_warm(*words, cwd=folder, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(folder: Path, *words: str) -> dict:
    return json.loads(say_warm(folder, *words, "--json"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two seeds of PPO were trained."""
    folder = tmp_path_factory.mktemp("first")
    printed = say(folder, "train", "ppo_cartpole", *SMALL, "--sessions", "2")
    assert "mean greedy return over 2 seeds, 5 episodes each" in printed
    assert "┤" in printed
    return folder


class TestAfterTraining:
    def test_show_gives_the_score_with_its_interval(self, place: Path):
        trial = ask(place, "show", "ppo_cartpole")["trials"][0]
        assert trial["score"]["n"] == 2
        assert trial["score"]["low"] <= trial["score"]["point"] <= trial["score"]["high"]
        assert trial["metrics"]["strength"] is not None

    def test_evaluation_repeats_and_differs_by_seed(self, place: Path):
        first, second = (ask(place, "eval", "ppo_cartpole", "--episodes", "6")["score"] for _ in range(2))
        assert first == second
        other = ask(place, "eval", "ppo_cartpole", "--episodes", "6", "--seed", "4")["score"]
        assert other != first

    def test_the_agent_is_recorded(self, place: Path):
        for name in ("agent.gif", "agent.mp4"):
            say_warm(place, "watch", "ppo_cartpole", "--out", name)
            assert (place / name).stat().st_size > 2000

    def test_curves_are_drawn(self, place: Path):
        files = ask(place, "plot", "ppo_cartpole", "--metric", "eval/score", "--out", "figures")["files"]
        assert {Path(file).suffix for file in files} == {".svg", ".png", ".csv"}
        assert all((place / file).stat().st_size > 0 for file in files)

    def test_a_child_run_goes_on_with_another_setting_and_names_its_parent(self, place: Path):
        changed = ("-s", "env.max_frame=8000", "-s", "agent.algorithm.entropy_coef=0.0")
        child = ask(place, "resume", "ppo_cartpole", *changed)["run"]
        run = json.loads((place / child / "trial_000/session_0/run.json").read_text())
        assert run["parent"]["frames"] == 6144
        assert run["spec"]["agent"]["algorithm"]["entropy_coef"] == 0.0
        assert run["state"] == "done"


@pytest.mark.slow
def test_ctrl_c_then_resume_ends_as_if_nothing_had_happened(tmp_path: Path):
    budget = ("-s", "env.max_frame=16000", "-s", "meta.final_episodes=5", "--sessions", "1")
    whole = ask(tmp_path, "train", "ppo_cartpole", *budget, "--out", "whole")
    process = operant(tmp_path, "train", "ppo_cartpole", *budget, "--out", "broken", "--plain")
    rows = tmp_path / "broken/trial_000/session_0/metrics.jsonl"
    while not (rows.exists() and rows.read_text().count("\n") > 3):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 4, errors
    assert "operant resume broken" in out + errors
    broken = ask(tmp_path, "resume", "broken")
    assert broken["trials"][0]["score"] == whole["trials"][0]["score"]
    assert broken["trials"][0]["metrics"] == whole["trials"][0]["metrics"]


@pytest.mark.slow
def test_the_readme_command_solves_cartpole(tmp_path: Path):
    score = ask(tmp_path, "train", "ppo_cartpole")["trials"][0]["score"]
    assert score["n"] == 4
    assert score["point"] >= 475
