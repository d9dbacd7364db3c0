"""Suites: those that ship answer the published table, and a file with a mistake is told where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.benchmark.load import builtin_suites, load_suite
from operant.benchmark.plan import plan_cells
from operant.benchmark.suite import Cell
from operant.errors import OperantError, SpecError, UsageError
from operant.spec.load import load

PUBLISHED = ("classic", "box2d", "mujoco", "atari")
CELLS = [cell for name in PUBLISHED for cell in load_suite(name).cells]
ALGORITHMS = {"DQN": "dqn", "DDQN+PER": "dqn"}


@pytest.mark.parametrize("cell", [*CELLS[:40:3], *CELLS[40::15]], ids=lambda cell: cell.name)
def test_a_published_cell_has_a_built_in_spec_of_its_algorithm(cell: Cell):
    settings = [f"{path}={value}" for path, value in cell.settings.items()]
    spec = load(cell.spec, None, [f"env.max_frame={cell.frames}", *settings]).spec
    assert spec.agent.algorithm.name == ALGORITHMS.get(cell.column, cell.column.lower())
    prioritised = spec.agent.memory is not None and spec.agent.memory.name == "prioritised"
    assert prioritised == (cell.column == "DDQN+PER")
    assert cell.settings.get("env", spec.env.name) == spec.env.name


def test_the_published_table_is_whole():
    counts = {name: len(load_suite(name).cells) for name in PUBLISHED}
    assert counts == {"classic": 18, "box2d": 10, "mujoco": 33, "atari": 171}
    assert all(cell.published is not None and cell.measure == "total_reward_ma" for cell in CELLS)
    figures = {cell.name: (cell.published, cell.frames) for cell in CELLS}
    assert figures["ppo_cartpole"] == (498.94, 200_000)
    assert figures["crossq_walker2d"] == (4389.62, 7_000_000)
    assert figures["ppo_atari_lam70_breakout"] == (326.47, 10_000_000)


def test_every_shipped_suite_says_what_it_is_for():
    assert all(builtin_suites().values())
    assert {"quick", *PUBLISHED} == set(builtin_suites())


def test_cells_are_named_or_matched_in_the_suites_order():
    suite = load_suite("box2d")
    assert [cell.name for cell in suite.select(["ppo_lunar", "*dqn*"])] == ["dqn_lunar", "ddqn_per_lunar", "ppo_lunar"]
    with pytest.raises(UsageError, match="no cell of box2d matches ppo_luner; did you mean ppo_lunar"):
        suite.select(["ppo*", "ppo_luner"])


def refusal(folder: Path, text: str) -> str:
    file = folder / "mine.yaml"
    file.write_text(text)
    with pytest.raises(OperantError) as refused:
        plan_cells(load_suite(str(file)), [], seeds=None, frames=None, overrides=[], settings={})
    return str(refused.value).replace(str(file), "mine.yaml")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("seedz: 3\ncells: [{spec: ppo_cartpole}]", "1:1", "did you mean seeds?"),
        ("cells:\n  - {spec: ppo_cartpole, frame: 5}", "2:26", "cells.0.frame is not a setting of a cell"),
        ("cells:\n  - {frames: 5}", "2:5", "cells.0.spec is missing"),
        ("cells: [{spec: ppo_cartpole, frames: -3}]", "1:38", "must be 1 to 1,000,000,000,000"),
        ("cells: [{spec: ppo_cartpole, measure: scroe}]", "1:39", "did you mean score?"),
        ("cells: [{spec: a}, {spec: a}]", "1:20", "two cells are called a"),
        ("name: a b\ncells: [{spec: a}]", "1:7", "has characters that do not belong"),
        ("cells: []", "1:8", "cells is empty"),
        ("cells: [7]", "1:9", "a cell is a mapping"),
        ("cells: [{spec: ppo_cartpol}]", "1:16", "did you mean ppo_cartpole?"),
        (
            "cells: [{spec: ppo_cartpole, set: {agent.algorithm.gama: 1}}]",
            "1:16",
            "agent.algorithm.gama is not a setting",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_meant(tmp_path: Path, text: str, place: str, words: str):
    told = refusal(tmp_path, text)
    assert told.startswith(f"mine.yaml:{place}: ")
    assert words in told
    assert "items" not in told, "a broken cell must not be told as a wrong number of cells"


def test_a_file_that_is_no_suite_and_a_name_that_is_none(tmp_path: Path):
    assert "the file holds a list, not a suite" in refusal(tmp_path, "[1]")
    assert "the file holds nothing" in refusal(tmp_path, "")
    with pytest.raises(UsageError, match="did you mean quick"):
        load_suite("quik")


def test_a_suite_finds_specs_beside_it_and_is_named_after_its_file(tmp_path: Path):
    (tmp_path / "specs.yaml").write_text("small: {env: {max_frame: 500}}\nlarge: {env: {max_frame: 900}}\n")
    file = tmp_path / "mine.yaml"
    file.write_text("cells: [{spec: 'specs.yaml:large'}, {spec: 'specs.yaml:small', frames: 700}]")
    suite = load_suite(str(file))
    planned = plan_cells(suite, [], seeds=2, frames=None, overrides=[], settings={})
    assert suite.name == "mine"
    assert [(each.cell.name, each.budget) for each in planned] == [("large", 900), ("small", 700)]
    reduced = plan_cells(suite, ["small"], seeds=2, frames=600, overrides=["meta.seed=7"], settings={"gamma": 0.5})[0]
    assert (reduced.budget, reduced.loaded.spec.env.max_frame, reduced.loaded.spec.meta.seed) == (700, 600, 7)
    assert reduced.loaded.spec.agent.algorithm.model_dump()["gamma"] == 0.5
    assert reduced.digest != planned[1].digest


def test_a_wrong_override_is_told_with_the_cell(tmp_path: Path):
    with pytest.raises(SpecError, match=r"cell ppo_cartpole: command line: agent\.algorithm\.gama is not a setting"):
        plan_cells(load_suite("quick"), [], seeds=None, frames=None, overrides=["agent.algorithm.gama=1"], settings={})
