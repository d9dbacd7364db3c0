"""Help is a promise: what it says is stored, it comes quickly, and it loads nothing heavy."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from operant import __version__
from operant.cli.app import command_names

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, Operant

HELP_SECONDS = 0.7


def test_help_lists_every_command(operant: Operant, golden: Golden) -> None:
    shown = operant("--help")
    assert shown.code == 0
    golden("help/operant", shown.out)


@pytest.mark.parametrize("command", command_names())
def test_help_of_every_command(operant: Operant, golden: Golden, command: str) -> None:
    shown = operant(command, "--help")
    assert shown.code == 0
    assert shown.err == ""
    assert "--json" in shown.out
    golden(f"help/{command}", shown.out)


GROUPS = [
    "hackmatrix",
    "hackmatrix serve",
    "hackmatrix replay",
    "models",
    "models fetch",
    "tasks",
    "tasks show",
    "tasks validate",
]


@pytest.mark.parametrize("words", GROUPS)
def test_help_of_groups(operant: Operant, golden: Golden, words: str) -> None:
    shown = operant(*words.split(), "--help")
    assert shown.code == 0
    golden(f"help/{words.replace(' ', '_')}", shown.out)


def test_no_words_at_all_is_a_question_for_help(operant: Operant) -> None:
    assert operant() == operant("--help")


def test_help_on_a_command_is_that_commands_help(operant: Operant) -> None:
    assert operant("help", "resume") == operant("resume", "--help")
    assert operant("help", "hackmatrix") == operant("hackmatrix", "--help")


@pytest.mark.parametrize("topic", ["", "algorithm ppo", "env"])
def test_help_on_settings(operant: Operant, golden: Golden, topic: str) -> None:
    shown = operant("help", *topic.split())
    assert shown.code == 0
    golden(f"help/topic_{topic.replace(' ', '_') or 'list'}", shown.out)


def test_version(operant: Operant) -> None:
    assert operant("--version").out == f"operant {__version__}\n"


def test_the_hidden_command_is_hidden(operant: Operant) -> None:
    assert "session RUN_DIR" not in operant("--help").out
    assert operant("session", "--help").code == 0


def test_help_comes_quickly() -> None:
    # Processor time, which other tests running beside this one do not stretch.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "operant", "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < HELP_SECONDS
