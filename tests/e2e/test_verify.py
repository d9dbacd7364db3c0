"""`operant verify` and `operant diff` on real runs, under a real change of package, seed, line of code and arithmetic.

The package is a copy in a repository of its own, so that a line of it can be changed as a developer does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import operant

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.slow

SETTINGS = (
    "env.max_frame=2048",
    "env.num_envs=4",
    "agent.algorithm.time_horizon=64",
    "meta.log_frequency=256",
    "meta.eval_frequency=1024",
    "meta.save_frequency=1024",
    "meta.eval_episodes=2",
    "meta.final_episodes=2",
    "meta.threads=1",
)


@dataclass(frozen=True)
class Lab:
    """A folder with a copy of Operant, and runs made by it."""

    folder: Path

    @property
    def code(self) -> Path:
        return self.folder / "code"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def operant(self, *words: str, path: Path | None = None, **variables: str) -> tuple[int, dict[str, Any]]:
        """A command in a process of its own; `path` is looked in for packages before all others."""
        places = [str(place) for place in (path, self.code) if place]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), **variables}
        ran = subprocess.run(
            [sys.executable, "-m", "operant", *words, "--json"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode in (0, 1), ran.stderr + ran.stdout
        return ran.returncode, json.loads(ran.stdout)

    def verify(self, *words: str, path: Path | None = None, **variables: str) -> tuple[int, dict[str, Any]]:
        return self.operant("verify", "run", *words, path=path, **variables)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    lab = Lab(tmp_path_factory.mktemp("verify"))
    source = Path(operant.__file__).parent
    shutil.copytree(source, lab.code / "operant", ignore=shutil.ignore_patterns("__pycache__"))
    git(lab.code, "init", "--quiet")
    git(lab.code, "add", ".")
    git(lab.code, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "first")
    settings = [word for setting in SETTINGS for word in ("-s", setting)]
    code, _ = lab.operant("train", "ppo_cartpole", "--sessions", "1", "--out", "run", *settings)
    assert code == 0
    return lab


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_an_unchanged_run_is_had_again_byte_for_byte_and_is_left_as_it_was(lab: Lab) -> None:
    before = contents(lab.run)
    code, found = lab.verify("--fraction", "1")
    assert (code, found["verdict"]) == (0, "bitwise equal")
    (session,) = found["sessions"]
    assert session["frames"] == 2048
    assert session["rows"] >= 8
    assert session["checkpoints"] == [1024, 2048]
    assert contents(lab.run) == before


def test_another_package_is_named(lab: Lab, tmp_path: Path) -> None:
    """A gymnasium of another version, whose poles fall faster, before the installed one."""
    import gymnasium

    shutil.copytree(Path(gymnasium.__file__).parent, tmp_path / "gymnasium")
    physics = tmp_path / "gymnasium/envs/classic_control/cartpole.py"
    text = physics.read_text()
    assert "self.gravity = 9.8" in text
    physics.write_text(text.replace("self.gravity = 9.8", "self.gravity = 19.8"))
    installed = metadata.distribution("gymnasium")
    about = tmp_path / "gymnasium-99.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gymnasium\nVersion: 99.0\n")
    _, found = lab.verify(path=tmp_path)
    assert found["verdict"] != "bitwise equal"
    assert cause(found) == ("package", "gymnasium", installed.version, "99.0")


def test_another_seed_is_named(lab: Lab) -> None:
    with changed(lab.run / "trial_000/session_0/run.json", '"seed": 0,', '"seed": 5,'):
        _, found = lab.verify()
    assert found["verdict"] != "bitwise equal"
    assert cause(found) == ("seed", "seed", "0", "5")


def test_a_changed_line_is_named_with_its_file_and_number(lab: Lab) -> None:
    losses = lab.code / "operant/engines/torch/losses.py"
    text = losses.read_text()
    old = next(line for line in text.splitlines() if "torch.min(" in line or "minimum(" in line)
    new = old.replace("minimum(", "maximum(").replace("torch.min(", "torch.max(")
    number = text.splitlines().index(old) + 1
    with changed(losses, old, new):
        _, found = lab.verify()
    assert found["verdict"] != "bitwise equal"
    assert cause(found)[:2] == ("code", "operant/engines/torch/losses.py")
    assert found["causes"][0]["lines"] == [f"{number} - {old.strip()}", f"{number} + {new.strip()}"]
    assert len(found["causes"]) == 1


def test_another_arithmetic_is_named(lab: Lab) -> None:
    import torch

    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this processor has no vector instructions that torch could do without")
    _, found = lab.verify(ATEN_CPU_CAPABILITY="default")
    assert found["verdict"] != "bitwise equal"
    assert {each["kind"] for each in found["causes"]} == {"arithmetic"}
    assert "torch.instructions" in {each["name"] for each in found["causes"]}
    assert found["sessions"][0]["rounding"]


def test_rows_that_were_changed_by_hand_are_not_blamed_on_the_machine(lab: Lab) -> None:
    metrics = lab.run / "trial_000/session_0/metrics.jsonl"
    row = json.loads(metrics.read_text().splitlines()[0])
    with changed(metrics, json.dumps(row["train/return"]), "777.5"):
        _, found = lab.verify()
    assert found["verdict"] == "different"
    assert found["causes"] == []
    assert found["repeatable"] is True


def test_diff_names_the_changed_line_between_two_runs(lab: Lab) -> None:
    losses = lab.code / "operant/engines/torch/losses.py"
    first = losses.read_text().splitlines()[0]
    with changed(losses, first, f"{first} "):
        lab.verify("--out", "other", "--fraction", "0.5")
    _, found = lab.operant("diff", "run", "other")
    code = [each for each in found["differences"] if each["kind"] == "code" and each["lines"]]
    assert [each["name"] for each in code] == ["operant/engines/torch/losses.py"]
    assert code[0]["lines"] == [f"1 - {first}", f"1 + {first}"]
    shutil.rmtree(lab.folder / "other")


def cause(found: dict[str, Any]) -> tuple[str, ...]:
    """The ingredient that is named first."""
    return tuple(found["causes"][0][key] for key in ("kind", "name", "a", "b"))


@contextmanager
def changed(file: Path, old: str, new: str) -> Iterator[None]:
    """A file with one text in the first place of another, until the block ends."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    yield
    file.write_text(text)
