"""`operant new` writes parts that work, and `operant check --contract` says what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.cli.new import KINDS
from operant.contract import runner
from operant.contract.runner import Finding
from tests.cli.conftest import ROOT

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_a_spec_and_a_test_are_written(operant: Operant, here: Path, kind: str):
    written = operant("new", kind, "own_thing")
    assert written.code == 0
    assert {path.name for path in here.iterdir()} == {"own_thing.py", "own_thing.yaml", "test_own_thing.py"}
    part = (here / "own_thing.py").read_text()
    defined, name = ("def own_thing(", "own_thing") if kind == "reward" else ("class OwnThing(", "OwnThing")
    assert defined in part
    assert f"my_{kind}" not in part + (here / "own_thing.yaml").read_text()
    assert f"operant check --contract own_thing:{name}" in written.out
    assert "operant train own_thing.yaml" in written.out


def test_into_another_folder(operant: Operant, here: Path):
    written = operant("new", "env", "maze", "--dir", "lab/parts")
    assert written.code == 0
    assert "cd lab/parts" in written.out
    assert (here / "lab" / "parts" / "maze.py").is_file()


def test_as_json(operant: Operant):
    assert operant("new", "task", "sums", "--json").document == {
        "part": "sums:Sums",
        "written": ["sums.py", "sums.yaml", "test_sums.py"],
        "exit": 0,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("enviroment", "maze"),
            "there is no kind of part 'enviroment'\n  try: choose one of: algorithm, env, net, task, schedule, reward",
        ),
        (("env", "MyMaze"), "'MyMaze' cannot be a module"),
        (("env", "MyMaze"), "try: for example my_maze"),
        (("env", "class"), "'class' cannot be a module"),
        (("env", "../maze"), "cannot be a module"),
        (("net", "torch"), "Python has a module torch already"),
    ],
)
def test_a_mistake_writes_nothing(operant: Operant, here: Path, words: tuple[str, str], message: str):
    refused = operant("new", *words)
    assert refused.code == 2
    assert message in refused.err
    assert not list(here.iterdir())


@pytest.mark.parametrize("file", ["maze.py", "maze.yaml", "test_maze.py"])
def test_nothing_is_overwritten(operant: Operant, here: Path, file: str):
    (here / file).write_text("mine")
    refused = operant("new", "env", "maze")
    assert refused.code == 2
    assert f"there is already {file}" in refused.err
    assert [path.read_text() for path in here.iterdir()] == ["mine"]


def test_the_contract_of_what_is_no_part(operant: Operant, here: Path):
    (here / "odd_parts.py").write_text("three = 3")
    refused = operant("check", "--contract", "odd_parts:three")
    assert refused.code == 2
    assert "odd_parts:three is no environment, task, algorithm, network, schedule or reward function" in refused.err
    assert (
        "--contract: odd_parts has no tree\n  try: did you mean three?"
        in operant("check", "--contract", "odd_parts:tree").err
    )


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command line as its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, "-m", "operant", *words]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_keeps_the_contract(tmp_path: Path, kind: str):
    assert run_in(tmp_path, "new", kind, "own_thing").returncode == 0
    budget = ["-s", "env.max_frame=256"] if kind in ("task", "reward") else ["-s", "env.max_frame=1024"]
    part = "own_thing:own_thing" if kind == "reward" else "own_thing:OwnThing"
    checked = run_in(tmp_path, "check", "--contract", part, *budget)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    lines = checked.stdout.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "ok  trains",
        "ok  same seed, same bytes",
        "ok  kill and resume",
        "ok  rows",
        "ok  episodes",
        "ok  evaluation",
    ]
    assert run_in(tmp_path, "check", "own_thing.yaml", "--no-estimate").returncode == 0


def test_findings_are_told_and_decide_the_exit_code(operant: Operant, monkeypatch: pytest.MonkeyPatch):
    found = [Finding("rows", True, "17 rows"), Finding("episodes", False, "episodes.jsonl: line 1 has no seed")]
    monkeypatch.setattr(runner, "run_contract", lambda spec, folder: iter(found))
    told = operant("check", "--contract", "ppo_cartpole")
    assert told.code == 3
    assert told.out == "ok  rows (17 rows)\nFAILED  episodes: episodes.jsonl: line 1 has no seed\n"
    document = operant("check", "--contract", "ppo_cartpole", "--json").document
    assert document["exit"] == 3
    assert document["findings"][1] == {
        "promise": "episodes",
        "kept": False,
        "detail": "episodes.jsonl: line 1 has no seed",
    }
    found.pop()
    assert operant("check", "--contract", "ppo_cartpole").code == 0


@pytest.mark.slow
def test_a_broken_promise_is_told_with_exit_code_3(tmp_path: Path):
    assert run_in(tmp_path, "new", "env", "maze").returncode == 0
    file = tmp_path / "maze.py"
    file.write_text(file.read_text().replace("else -0.02", "else -np.random.random()"))
    checked = run_in(tmp_path, "check", "--contract", "maze:Maze", "-s", "env.max_frame=1024")
    assert checked.returncode == 3
    assert "FAILED  same seed, same bytes: metrics.jsonl line 1: " in checked.stdout
