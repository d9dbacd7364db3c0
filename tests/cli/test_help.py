"""Help is a promise: what it says is stored, it comes quickly, and it loads nothing heavy."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from operant import __version__
from operant.cli.commands import COMMANDS

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, Operant

HELP_SECONDS = 0.7


def test_help_lists_every_command(operant: Operant, golden: Golden) -> None:
    shown = operant("--help")
    assert shown.code == 0
    golden("help/operant", shown.out)


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
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
    "tasks import",
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


@pytest.mark.parametrize("topic", ["gamma", "agent.algorithm.lam", "algorithm.clip_eps"])
def test_help_finds_settings_by_name_and_by_path(operant: Operant, golden: Golden, topic: str) -> None:
    shown = operant("help", topic)
    assert shown.code == 0
    golden(f"help/setting_{topic}", shown.out)


def test_help_on_the_path_of_a_section_is_that_section(operant: Operant) -> None:
    assert operant("help", "agent.algorithm") == operant("help", "algorithm")
    assert operant("help", "env.text") == operant("help", "text")


def test_a_setting_of_one_name_is_one_row_for_each_choice_that_has_it(operant: Operant) -> None:
    rows = operant("help", "gamma", "--json").document["rows"]
    assert len({(row["name"], row["of"]) for row in rows}) == len(rows)
    assert {"ppo", "dqn", "sac", "ExponentialLR"} <= {row["of"] for row in rows}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gama", "gamma?"),
        ("agent.algorithm.gama", "agent.algorithm.gamma?"),
        ("clip", "clip_each or clip_eps or clip_grad_norm?"),
        ("pppo", "algorithm ppo?"),
    ],
)
def test_a_word_that_is_unknown_gets_the_nearest_names(operant: Operant, typed: str, meant: str) -> None:
    told = operant("help", typed)
    assert told.code == 2
    assert f"there is no help on {typed}; did you mean {meant}" in told.err


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
