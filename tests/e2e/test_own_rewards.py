"""Own reward functions and schedules of docs/examples with a tiny language model: trained, resumed, mistyped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.cli.app import run
from operant.run.layout import LOCK_FILE, METRICS_FILE
from operant.run.metrics import read_rows
from tests.e2e.test_own_parts import SCRIPT, SESSION, environment, folder_of_parts, operant, outcome
from tests.processes import wait_until

pytest.importorskip("torch")
SPEC = """\
env:
  name: copy
  max_frame: 256
  text:
    arguments: {style: bare, letters: 3}
    max_tokens: 8
    reward_functions:
      - {name: "my_rewards:brevity", weight: 0.2, target: 4}
      - {name: "my_rewards:variety", weight: 0.1}
      - {name: regex, weight: 0.1, pattern: "[a-z]+"}
agent:
  algorithm:
    name: grpo
    group_size: 4
    batch_size: 16
    entropy_coef: {name: "my_schedules:Cosine", start: 0.01, end: 0.0, frames: 200}
  model: {source: tiny, tiny: {layers: 1, width: 32, heads: 2, context: 64}, optimizer: {lr: 1e-3}}
meta:
  max_session: 1
  threads: 1
  log_frequency: 16
  eval_frequency: 128
  save_frequency: 64
  eval_episodes: 4
  final_episodes: 4
"""
PARTS = {"parts/verifier", "parts/brevity", "parts/variety", "parts/regex"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = folder_of_parts(tmp_path_factory.mktemp("own") / "lab")
    (path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """A run that nothing disturbed."""
    done = operant("train", "spec.yaml", "--out", "whole", "--plain", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "whole"


@pytest.mark.slow
def test_parts_are_in_rows_episodes_and_the_record(whole: Path):
    rows = list(read_rows(whole / SESSION / METRICS_FILE))
    assert set(rows[1]) >= PARTS
    assert {f"eval/{name}" for name in PARTS} <= set(rows[0])
    episodes = [json.loads(line) for line in (whole / SESSION / "episodes.jsonl").read_text().splitlines()]
    for episode in episodes:
        parts = episode["parts"]
        whole_reward = parts["verifier"] + 0.2 * parts["brevity"] + 0.1 * parts["variety"] + 0.1 * parts["regex"]
        assert episode["score"] == pytest.approx(whole_reward)
    modules = [part["module"] for part in json.loads((whole / SESSION / "run.json").read_text())["parts"]]
    assert sorted(modules) == ["my_rewards", "my_schedules"]


@pytest.mark.slow
def test_trained_from_python_is_the_same_run(folder: Path, whole: Path):
    (folder / "five_lines.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "five_lines.py"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert outcome(folder / "from_python") == outcome(whole)


@pytest.mark.slow
def test_killed_and_resumed_from_another_folder_is_the_same_run(folder: Path, whole: Path, tmp_path: Path):
    command = [sys.executable, "-m", "operant", "train", "spec.yaml", "--out", "broken", "--plain"]
    launcher = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    session = folder / "broken" / SESSION
    rows = session / METRICS_FILE
    assert wait_until(lambda: rows.exists() and rows.read_bytes().count(b"\n") >= 4, seconds=120)
    os.kill(json.loads((session / LOCK_FILE).read_text())["pid"], signal.SIGKILL)
    launcher.wait(60)
    assert rows.read_bytes().count(b"\n") < 17, "it ended before it was killed"
    done = operant("resume", str(folder / "broken"), "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert outcome(folder / "broken") == outcome(whole)


@pytest.mark.slow
def test_a_failing_function_is_told_and_the_run_goes_on(folder: Path):
    (folder / "bad_rewards.py").write_text("def bad(completion):\n    return 1 / (len(completion) - 8)\n")
    functions = 'env.text.reward_functions=[{name: "bad_rewards:bad"}]'
    words = ("spec.yaml", "-s", functions, "-s", "env.max_frame=32", "--out", "bad", "--plain")
    done = operant("train", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    events = (folder / "bad" / SESSION / "events.jsonl").read_text(encoding="utf-8")
    assert "reward function bad failed: " in events
    assert "ZeroDivisionError: division by zero" in events


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process in the folder, which forgets what it has imported from there."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    for name in ("my_rewards", "my_schedules"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("words", "begin", "line"),
    [
        (("reward", "my_rewards:brevity"), "reward my_rewards:brevity: Take from", "Characters that cost nothing."),
        (("schedule", "my_schedules:Cosine"), "schedule my_schedules:Cosine: Half a cosine", "Value at frame 0."),
    ],
)
def test_help_explains_settings(
    here: Path, words: tuple[str, ...], begin: str, line: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["help", *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith(begin)
    assert line in text


@pytest.mark.parametrize(
    ("setting", "problem", "hint"),
    [
        ("env.text.reward_functions.0.taget=1", "taget is not a setting of my_rewards:brevity", "did you mean target?"),
        ("env.text.reward_functions.0.target=0", "reward_functions.0.target = 0 is out of range", "1 or more"),
        ("env.text.reward_functions.0.name=my_rewards:brevty", "my_rewards has no brevty", "did you mean brevity?"),
        ("env.text.reward_functions.2.name=regexp", 'name = "regexp" is not one of regex', "did you mean regex?"),
        ("env.text.reward_functions.1.label=brevity", "has the name brevity, which another has", "a label"),
        (
            "agent.algorithm.entropy_coef.strat=1",
            "strat is not a setting of my_schedules:Cosine",
            "did you mean start?",
        ),
        ("agent.algorithm.entropy_coef.end=-1", "agent.algorithm.entropy_coef is ", "each value 0 to 10"),
    ],
)
def test_mistakes_are_told_with_a_caret(
    here: Path, setting: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["check", "spec.yaml", "-s", setting]) == 2
    told = capsys.readouterr().err
    assert problem in told
    assert hint in told
    assert "^" in told


def test_an_entry_point_gives_them_names(folder: Path, tmp_path: Path):
    metadata = tmp_path / "my_parts-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n", encoding="utf-8")
    lines = "[operant.rewards]\nbrief = my_rewards:brevity\n[operant.schedules]\ncosine = my_schedules:Cosine\n"
    (metadata / "entry_points.txt").write_text(lines, encoding="utf-8")
    assert "brief" in operant("help", "reward", cwd=folder, path=tmp_path).stdout
    assert "cosine" in operant("help", "schedule", cwd=folder, path=tmp_path).stdout
