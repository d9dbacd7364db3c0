"""What the shell offers at TAB, by the protocol of the scripts that Typer installs, and how quickly."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from operant.cli import completion_table
from operant.cli.completers import complete_run, complete_spec
from operant.cli.completion import offers

COMPLETION_SECONDS = 0.3


@pytest.fixture(autouse=True)
def _own_cache(here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "completion"))


def ask(shell: str, **typed: str) -> subprocess.CompletedProcess[str]:
    """The program as the shell's script calls it."""
    environment = {**os.environ, "_OPERANT_COMPLETE": f"complete_{shell}", **typed}
    command = [sys.executable, "-m", "operant"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def bash(*words: str) -> list[str]:
    """What bash is offered for the last of the words, broken at `=` as bash breaks them."""
    done = ask("bash", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1))
    assert done.stderr == ""
    return done.stdout.split()


def values(*words: str) -> list[str]:
    return [value for value, _ in offers(list(words[:-1]), words[-1])]


def test_bash_is_offered_commands_and_options() -> None:
    assert bash("operant", "res") == ["resume"]
    assert values("tasks", "s") == ["show"]
    assert "--sessions" in values("train", "ppo_cartpole", "--se")
    assert values("nonsense", "") == []


def test_specs_and_runs(here: Path) -> None:
    (here / "ppo_mine.yaml").write_text("")
    for stamp in ("20260101-000000", "20260102-000000"):
        (here / "runs" / "toy" / stamp).mkdir(parents=True)
    assert {"ppo_cartpole", "ppo_mine.yaml"} <= {name for name, _ in complete_spec([], "ppo")}
    assert [name for name, _ in complete_run([], "l")] == ["latest"]
    assert values("show", "toy") == ["toy", "toy/20260101-000000", "toy/20260102-000000"]
    assert values("compare", "toy", "toy/20260102") == ["toy/20260102-000000"]


def test_settings_are_those_of_the_spec() -> None:
    offered = values("train", "ppo_cartpole", "-s", "agent.algo")
    assert {"agent.algorithm.name=", "agent.algorithm.gamma=", "agent.algorithm.clip_eps="} <= set(offered)
    assert "agent.algorithm.temperature=" not in offered
    assert "agent.algorithm.temperature=" in values("train", "sac_pendulum", "--set", "agent.algorithm.t")


def test_an_override_on_the_line_chooses_the_settings() -> None:
    words = ("train", "ppo_cartpole", "-s", "agent.algorithm.name=sac", "-s", "agent.algorithm.temp")
    assert "agent.algorithm.temperature=" in values(*words)


def test_a_spec_file_chooses_the_settings(here: Path) -> None:
    (here / "mine.yaml").write_text("env: {name: CartPole-v1}\nagent:\n  algorithm:\n    name: sac\n")
    offered = values("check", "mine.yaml", "-s", "agent.algorithm.")
    assert "agent.algorithm.temperature=" in offered
    assert "agent.algorithm.clip_eps=" not in offered


def test_one_path_comes_with_its_values_so_that_no_space_follows() -> None:
    assert values("train", "ppo_cartpole", "-s", "agent.algorithm.gam") == [
        "agent.algorithm.gamma=",
        "agent.algorithm.gamma=0.99",
    ]
    assert values("train", "ppo_cartpole", "-s", "agent.algorithm.sym") == [
        "agent.algorithm.symlog=true",
        "agent.algorithm.symlog=false",
    ]


def test_bash_is_offered_the_values_behind_the_equals_sign_alone() -> None:
    line = ("operant", "train", "ppo_cartpole", "-s", "agent.algorithm.name", "=")
    assert {"ppo", "dqn", "sac"} <= set(bash(*line))
    assert bash(*line, "sa") == ["sac", "sarsa"]


def test_topics_of_help() -> None:
    assert {"algorithm", "env", "train"} <= set(values("help", ""))
    assert values("help", "algorithm", "pp") == ["ppo", "ppo_sil"]
    assert values("help", "gam") == ["gamma"]
    assert "agent.algorithm.gamma" in values("help", "agent.algorithm.g")


def test_a_command_is_a_topic_of_help() -> None:
    assert "train" in values("help", "tr")
    assert "train" not in values("help", "algorithm", "tr")


def test_zsh_and_fish_are_told_what_each_offer_means() -> None:
    line = "operant train ppo_cartpole -s agent.algorithm.clip_"
    assert '"agent.algorithm.clip_eps=":"Clip range' in ask("zsh", _TYPER_COMPLETE_ARGS=line).stdout
    assert ask("zsh", _TYPER_COMPLETE_ARGS="operant nonsense ").stdout == "_files\n"
    fish = ask("fish", _TYPER_COMPLETE_ARGS="operant re", _TYPER_COMPLETE_FISH_ACTION="get-args").stdout
    assert fish.startswith("resume\tContinue a run")


def test_a_change_of_the_package_builds_the_table_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = completion_table.table()
    monkeypatch.setattr(completion_table, "__version__", "0.0.0")
    completion_table.table.cache_clear()
    assert completion_table.table()["key"] != kept["key"]
    completion_table.table.cache_clear()


def test_completion_comes_quickly() -> None:
    line = ("operant", "train", "ppo_cartpole", "-s", "agent.algo")
    bash(*line)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bash(*line)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < COMPLETION_SECONDS
