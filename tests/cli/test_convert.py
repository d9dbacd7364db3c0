"""Files of other labs at the command line: `convert` word for word, and `train` of one as it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, Operant, Toy

DIALECTS = Path(__file__).parents[1] / "unit" / "spec" / "dialects"
FILES = DIALECTS / "slm" / "files"
FILLED = ("-s", "env=Hopper-v5", "-s", "max_frame=4e6")

# name: the words after `operant convert`
CONVERTED: dict[str, tuple[str, ...]] = {
    "ppo_cartpole": ("ppo_cartpole.json",),
    "dqn_lunar": ("dqn_lunar.json",),
    "ppo_continuous": ("ppo_continuous.yaml:ppo_continuous", *FILLED),
    "older": ("older.json", "vanilla_dqn_cartpole"),
    "sac_pendulum": ("sac_pendulum.yaml",),
    "lossy": ("dqn_cartpole.yaml", "--lossy"),
    "rlvr_gsm8k": ("rlvr_gsm8k.yaml",),
    "rlvr_mixed": ("rlvr_mixed.yaml",),
    "prime_rl_gsm8k": ("prime_rl_gsm8k.toml",),
    "prime_rl_older": ("prime_rl_older.toml",),
    "prime_rl_research": ("prime_rl_research.toml",),
    "prime_rl_guest": ("prime_rl_guest.toml",),
    "prime_rl_tree": ("prime_rl_tree.toml",),
}
REFUSED: dict[str, tuple[str, ...]] = {
    "no_counterpart": ("dqn_cartpole.yaml",),
    "no_such_algorithm": ("hydra_cartpole.yaml", "--lossy"),
    "left_over_variables": ("ppo_continuous.yaml", "ppo_continuous"),
    "native_already": ("ppo_cartpole",),
}


EXPLAINED: dict[str, tuple[str, ...]] = {
    "ppo_cartpole": ("ppo_cartpole.json",),
    "refused": ("hydra_cartpole.yaml",),
    "completed": ("ppo_continuous.yaml:ppo_continuous", *FILLED),
}


@pytest.fixture(autouse=True)
def _files(here: Path) -> None:
    for folder in (FILES, DIALECTS / "files"):
        shutil.copytree(folder, here, dirs_exist_ok=True)


@pytest.mark.parametrize("name", CONVERTED)
def test_a_converted_spec(operant: Operant, golden: Golden, name: str) -> None:
    result = operant("convert", *CONVERTED[name])
    assert (result.code, result.err) == (0, "")
    golden(f"convert/{name}", result.out)


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_file_explained_setting_by_setting(
    operant: Operant, golden: Golden, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = operant("convert", "--explain", *EXPLAINED[name])
    assert max(map(len, result.out.splitlines())) <= 100
    golden(f"explain/{name}", f"{result.out}exit {result.code}\n")
    assert json.loads(operant("convert", "--explain", "--json", *EXPLAINED[name]).out)["exit"] == result.code


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_conversion(operant: Operant, golden: Golden, name: str) -> None:
    result = operant("convert", *REFUSED[name])
    assert (result.code, result.out) == (2, "")
    golden(f"errors/convert_{name}", f"{result.err}exit {result.code}\n")


def test_a_converted_file_is_never_written_over(operant: Operant, here: Path) -> None:
    assert operant("convert", "ppo_cartpole.json", "--out", "native.yaml").out == "native.yaml\n"
    assert operant("check", "native.yaml", "--no-estimate").code == 0
    again = operant("convert", "ppo_cartpole.json", "--out", "native.yaml")
    assert again.code == 2
    assert "nothing is ever overwritten" in again.err


def test_the_conversion_as_json(operant: Operant) -> None:
    told = operant("convert", "ppo_cartpole.json", "--json").document
    (spec,) = told["specs"]
    assert spec["spec"]["agent"]["algorithm"]["name"] == "ppo"
    assert {"key": "agent.name", "text": "left out: a label", "place": "ppo_cartpole.json:4:7"} in spec["remarks"]


@pytest.mark.parametrize("words", [("ppo_cartpole.json", "ppo_cartpole"), ("ppo_cartpole.json:ppo_cartpole",)])
def test_an_slm_lab_file_trains_as_it_is(operant: Operant, toy: Toy, here: Path, words: tuple[str, ...]) -> None:
    small = ("-s", "env.name=Toy-v0", "-s", "env.max_frame=2048", "--sessions", "1", "--plain")
    result = operant("train", *words, *small)
    assert result.code == 0, result.err
    assert "an SLM-Lab spec; 4 keys changed or left out: agent.name," in result.out
    kept = next((here / "runs" / "ppo_cartpole").glob("*/spec.json"))
    assert kept.read_text() == (here / "ppo_cartpole.json").read_text()


def test_a_check_tells_what_was_changed(operant: Operant) -> None:
    words = ("check", "ppo_cartpole.json", "--no-estimate")
    assert "operant convert ppo_cartpole.json ppo_cartpole" in operant(*words).out
    assert "agent.name: left out: a label" in operant(*words, "--json").document["remarks"]


@pytest.mark.parametrize(
    ("file", "title"),
    [("rlvr_gsm8k.yaml", "an rlvr-experiments spec; 33 keys"), ("prime_rl_older.toml", "a prime-rl config; 6 keys")],
)
def test_a_check_names_the_lab(operant: Operant, file: str, title: str) -> None:
    small = ("-s", "agent.model.source=tiny", "-s", "env.name=copy", "-s", "env.text.max_tokens=64")
    result = operant("check", file, "--no-estimate", *small)
    assert result.code == 0, result.err
    assert title in result.out


@pytest.mark.slow
def test_a_prime_rl_file_trains_as_it_is(operant: Operant, here: Path) -> None:
    tiny = ("agent.model.source=tiny", "agent.model.tiny.layers=1", "agent.model.tiny.width=32", "env.name=copy")
    small = (*tiny, "env.text.max_tokens=6", "env.max_frame=32", "meta.eval_episodes=2", "meta.final_episodes=2")
    result = operant("train", "prime_rl_older.toml", "--plain", *(word for each in small for word in ("-s", each)))
    assert result.code == 0, result.err
    assert "a prime-rl config; 6 keys changed or left out" in result.out
    kept = next((here / "runs" / "prime_rl_older").glob("*/spec.toml"), None)
    assert kept is not None
    assert kept.read_text() == (here / "prime_rl_older.toml").read_text()
