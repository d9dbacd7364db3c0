"""The command line in this process, golden texts, and a toy engine for whole runs that start in a second.

`OPERANT_GOLDEN=write pytest tests/cli` stores the golden texts anew; read each of them before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from operant import engines
from operant.cli.app import run
from operant.errors import RunError
from operant.run.run import Run, find_sessions

TOY = Path(__file__).parent / "toy"
ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("OPERANT_GOLDEN") == "write"
_STAMP = re.compile(r"\d{8}-\d{6}(-\d+)?")


TOY_SPEC = """\
name: toy
env:
  name: Toy-v0
  num_envs: 1
  max_frame: {frames}
  kwargs: {kwargs}
agent:
  algorithm: {{name: ppo, time_horizon: 10, minibatch_size: 10}}
meta:
  max_session: {sessions}
  threads: 1
  log_frequency: 10
  eval_frequency: 50
  save_frequency: 50
"""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        return json.loads(self.out)


Operant = Callable[..., Result]
Golden = Callable[[str, str], None]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and nothing of the developer's terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPERANT_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def operant(here: Path, capsys: pytest.CaptureFixture[str]) -> Operant:
    """Runs one command line in this process."""

    def call(*words: str) -> Result:
        capsys.readouterr()
        code = run([str(word) for word in words])
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return call


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    """Compares with a stored text, in which the temporary folder is <here> and a time stamp is <stamp>."""

    def compare(name: str, text: str) -> None:
        text = _STAMP.sub("<stamp>", text.replace(str(tmp_path), "<here>"))
        path = GOLDEN / f"{name}.txt"
        if WRITE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


class Toy:
    """A working directory with a spec that the toy engine trains in a moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write()

    def write(self, frames: int = 100, sessions: int = 2, **kwargs: float | str) -> None:
        """Write toy.yaml; what `kwargs` may be is said in toy_engine.py."""
        text = TOY_SPEC.format(frames=frames, sessions=sessions, kwargs=json.dumps(kwargs))
        (self.folder / "toy.yaml").write_text(text)

    def sessions(self) -> list[Run]:
        """The sessions of the newest run; none while there is no run, or while it is being made."""
        folders = sorted((self.folder / "runs" / "toy").glob("[0-9]*"))
        try:
            return find_sessions(folders[-1]) if folders else []
        except RunError:
            return []

    def states(self) -> list[str]:
        """The states of the newest run's sessions."""
        return [run.state for run in self.sessions()]


@pytest.fixture
def toy(here: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A working directory of the toy engine."""
    use_toy_engine(monkeypatch)
    return Toy(here)


def use_toy_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy engine in place of the torch one, here and in every process started from here."""
    monkeypatch.setitem(engines.ENGINES, "torch", "toy_engine")
    monkeypatch.setattr(sys, "path", [str(TOY), *sys.path])
    monkeypatch.setenv("PYTHONPATH", f"{TOY}{os.pathsep}{ROOT}")
    monkeypatch.setenv("PYTHONUTF8", "1")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
