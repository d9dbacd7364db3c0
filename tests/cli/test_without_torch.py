"""An install without extras: whatever reads works, and whatever computes names the command that installs its engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from operant.cli.app import run
from tests.cli.conftest import Toy, use_toy_engine

SLM_SPEC = Path(__file__).parents[1] / "unit" / "spec" / "dialects" / "slm" / "files" / "ppo_cartpole.json"
ABSENT = """\
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
absent = ("torch", "jax", "jaxlib", "transformers", "tokenizers")
hide = lambda name, *rest: None if name.partition(".")[0] in absent else find(name, *rest)
PathFinder.find_spec = staticmethod(hide)
"""
RUN = "from operant.cli.app import run\nsys.exit(run(sys.argv[1:]))\n"
RUN_ALL = """\
import contextlib, io, json
from operant.cli.app import run

told = {}
for command in sys.stdin.read().splitlines():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = run(command.split())
    told[command] = (code, said.getvalue().strip())
assert not {"torch", "jax"} & set(sys.modules)
json.dump(told, sys.stdout)
"""
API = """\
import operant

trial = operant.open("runs/toy")
assert trial.score and trial.sessions[0].metrics("train/return")
assert operant.list_runs() and operant.compare("toy", "toy")
assert operant.load_spec("ppo_cartpole").engine_name == "torch"
for call in (lambda: operant.train("ppo_cartpole"), lambda: operant.evaluate("toy")):
    try:
        call()
    except operant.OperantError as error:
        assert "[deep]" in str(error) or "--extra deep" in str(error), error
    else:
        raise AssertionError("it ran without torch")
assert not {"torch", "jax"} & set(sys.modules)
"""


def without_torch(*words: str, program: str = RUN, given: str = "") -> subprocess.CompletedProcess[str]:
    """A command line, or a program, in a process that cannot import what the engines compute with."""
    argv = [sys.executable, "-c", ABSENT + program, *words]
    return subprocess.run(argv, input=given, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that the toy engine trained."""
    folder = tmp_path_factory.mktemp("toy")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        use_toy_engine(monkeypatch)
        Toy(folder)
        assert run(["train", "toy.yaml"]) == 0
    return folder


@pytest.fixture
def trained(here: Path, finished: Path) -> Path:
    """A run to read; the processes that read it have the real engines, which cannot load."""
    return shutil.copytree(finished, here, dirs_exist_ok=True)


def test_what_reads_needs_no_engine(trained: Path) -> None:
    shutil.copy(SLM_SPEC, trained / "theirs.json")
    commands = """--help
        specs
        specs ppo_cartpole
        runs
        show toy
        show toy --episodes
        plot toy
        compare toy toy
        help
        help algorithm ppo
        help gamma
        schema
        convert theirs.json
        doctor --no-speed
        models
        tasks
        check ppo_cartpole --no-estimate
        resume toy"""
    done = without_torch(program=RUN_ALL, given=commands)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {command: code for command, (code, _) in told.items() if code != 0} == {}, done.stderr
    assert [command for command, (_, said) in told.items() if not said] == []


@pytest.mark.parametrize(
    ("command", "engine", "extra"),
    [
        ("train ppo_cartpole", "torch", "deep"),
        ("train ppo_cartpole_jax", "jax", "jax"),
        ("train grpo_tiny", "language", "language"),
        ("check ppo_cartpole_jax", "jax", "jax"),
        ("check grpo_tiny", "language", "language"),
        ("serve tiny", "language", "language"),
    ],
)
def test_what_computes_names_the_command_that_installs_its_engine(
    here: Path, command: str, engine: str, extra: str
) -> None:
    done = without_torch(*command.split())
    package = "jax" if engine == "jax" else "torch"
    assert done.returncode == 2
    assert f"the {engine} engine needs the package {package}, which is not installed\n  try: " in done.stderr
    assert f"--extra {extra}" in done.stderr or f"[{extra}]" in done.stderr
    assert not (here / "runs").exists()


@pytest.mark.parametrize("command", ["eval toy", "watch toy --out toy.gif", "resume toy -s env.max_frame=200"])
def test_a_run_that_is_there_needs_its_engine_to_act(trained: Path, command: str) -> None:
    done = without_torch(*command.split())
    assert done.returncode == 2
    assert "the torch engine needs the package torch, which is not installed" in done.stderr


def test_a_check_is_done_and_says_what_training_needs(here: Path) -> None:
    done = without_torch("check", "ppo_cartpole")
    first, second = done.stdout.splitlines()
    assert done.returncode == 0
    assert first.startswith("ok  ppo_cartpole")
    assert "to train: the torch engine needs the package torch" in second


def test_the_python_api_reads_runs(trained: Path) -> None:
    done = without_torch(program=API)
    assert (done.returncode, done.stderr) == (0, "")
