"""The process of an external environment: the errors when it cannot start, and that nothing is left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from operant.envs.text.tasks import class_of, make_task, takes_argument
from operant.envs.verifiers.process import ExternalProcess
from operant.envs.verifiers.task import Rollout, VerifiersTask, split_arguments
from operant.errors import RunError, UsageError
from tests.processes import lives, wait_until


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """A Python that has no package at all."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_python_without_verifiers_is_told_with_the_command_that_installs_it(bare_python: str) -> None:
    task = make_task("verifiers:wordle", {"python": bare_python})
    with pytest.raises(UsageError, match=r"verifiers:wordle: \S+ has no package verifiers") as error:
        task.problems("train")
    assert "-m pip install verifiers" in (error.value.remedy or "")


def test_a_python_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no Python at /no/such/python"):
        make_task("verifiers:wordle", {"python": "/no/such/python"}).problems("train")


def test_a_task_without_a_name() -> None:
    with pytest.raises(UsageError, match="names no environment"):
        make_task("verifiers:", {})


def test_a_task_is_made_without_a_process() -> None:
    task = make_task("verifiers:wordle", {"python": "/no/such/python", "words": 5}, "mine")
    assert isinstance(task, VerifiersTask)
    assert task.name == "mine"
    assert class_of("verifiers:wordle") is VerifiersTask
    assert takes_argument("verifiers:wordle", "words")


def test_our_arguments_are_kept_and_others_handed_on() -> None:
    given = {"python": "p", "seconds": 5, "words": 3, "difficulty": "hard"}
    assert split_arguments("verifiers:a/b", given) == {
        "environment": "a/b",
        "arguments": {"words": 3, "difficulty": "hard"},
        "python": "p",
        "seconds": 5,
    }


def test_an_environment_that_dies_fails_whoever_waits_with_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nread line\necho out of memory >&2\nexit 3\n")
    script.chmod(0o755)
    process = ExternalProcess(str(script), "verifiers:wordle")
    with pytest.raises(RunError, match="its process ended: out of memory"):
        process.ask("open", 10.0)
    assert not process.alive
    process.close()


def test_an_environment_that_is_silent_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/pid\nsleep 600\n")
    script.chmod(0o755)
    process = ExternalProcess(str(script), "verifiers:wordle")
    pid = tmp_path / "pid"
    assert wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    process.END_SECONDS = 0.1
    with pytest.raises(RunError, match="has not answered"):
        process.ask("open", 0.1)
    assert not process.alive
    assert wait_until(lambda: not lives(int(pid.read_text())))


@pytest.mark.parametrize(
    ("rollout", "score", "outcome"),
    [
        (Rollout("a", 1.0), 1.0, "right"),
        (Rollout("a", -0.5), -0.5, "wrong"),
        (Rollout("a", 0.25), 0.25, "partial"),
        (Rollout("a", 0.25, error="the sandbox died"), None, "error"),
        (Rollout("a", float("nan")), None, "error"),
        (Rollout("a", None), None, "error"),
    ],
)
def test_errors_are_no_scores(rollout: Rollout, score: float | None, outcome: str) -> None:
    assert (rollout.verdict.score, rollout.verdict.outcome) == (score, outcome)
