"""The suites answer the published table: every cell has a spec, and no figure is called met that is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import suite, tables
from benchmarks.suite import training_return
from benchmarks.suites import SUITES, Cell
from operant.report.read import SessionRecord
from operant.spec.load import load
from tests.warm import use_warm_sessions

CELLS = [cell for cells in SUITES.values() for cell in cells]
ALGORITHMS = {"DQN": "dqn", "DDQN+PER": "dqn"}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell_has_a_built_in_spec_of_its_environment_and_algorithm(cell: Cell):
    spec = load(cell.spec, None, [f"env.max_frame={cell.frames}", *cell.overrides]).spec
    assert spec.env.name == cell.problem.env
    assert spec.agent.algorithm.name == ALGORITHMS.get(cell.column, cell.column.lower())
    prioritised = spec.agent.memory is not None and spec.agent.memory.name == "prioritised"
    assert prioritised == (cell.column == "DDQN+PER")


def outcome(score: float, average: float, frames: int = 200_000) -> dict[str, Any]:
    def estimate(point: float) -> dict[str, Any]:
        return {"point": point, "low": point - 1, "high": point + 1, "n": 4}

    return {
        "frames": frames,
        "published": 400.0,
        "published_frames": 200_000,
        "greedy": estimate(score),
        "sampled": estimate(average),
        "total_reward_ma": estimate(average),
    }


@pytest.mark.parametrize(
    ("score", "average", "word"),
    [(400.0, 400.0, "yes"), (500.0, 399.9, "score only"), (399.9, 401.0, "ma only"), (10.0, 10.0, "no")],
)
def test_met_says_which_measure_reaches_the_published_figure(score: float, average: float, word: str):
    assert tables.met(outcome(score, average)) == word


def test_a_reduced_budget_is_never_passed_off_as_the_whole():
    short = outcome(500.0, 500.0, frames=50_000)
    assert tables.met(short) == "yes (reduced budget)"
    assert "50,000 of 200,000" in tables.row(CELLS[0], short)


def test_a_cell_without_a_result_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    (tmp_path / f"{CELLS[0].name}.json").write_text(json.dumps(outcome(500.0, 500.0)))
    assert f"\nNot run: `{CELLS[1].name}`.\n" in tables.table(CELLS[:2])
    assert tables.table(CELLS[1:3]) == "Not run: any of its 2 cells.\n"


def test_the_training_measure_averages_over_the_last_frames_however_many_rows_they_have():
    rows = [{"frames": at, "updates": at, "train/return": float(at)} for at in (100, 200, 300, 1000)]
    session = SessionRecord(Path(), "x", 0, 0, "done", None, 1, {}, None, rows, {}, {})
    assert training_return(session, 750) == pytest.approx((300 + 1000) / 2)


def test_cells_are_named_or_matched_in_the_suites_order():
    chosen = suite.select("box2d", ["ppo_lunar", "*dqn*"])
    assert [cell.name for cell in chosen] == ["dqn_lunar", "ddqn_per_lunar", "ppo_lunar"]
    with pytest.raises(SystemExit, match="no cell ppo_mars in box2d; there are dqn_lunar, "):
        suite.select("box2d", ["ppo*", "ppo_mars"])


@pytest.mark.slow
def test_a_suite_trains_stores_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    use_warm_sessions(monkeypatch)
    monkeypatch.setattr(suite, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(suite, "RESULTS", tmp_path / "results")
    argv = ["classic", "--cells", "a2c_cartpole", "--frames", "2000", "--seeds", "2", "-s", "meta.final_episodes=2"]
    assert suite.main(argv) == 0
    stored = json.loads((tmp_path / "results" / "a2c_cartpole.json").read_text())
    assert stored["frames"] == 2000
    assert stored["published_frames"] == 200_000
    assert len(stored["greedy"]["each"]) == len(stored["sampled"]["each"]) == 2
    assert "a2c_cartpole" in capsys.readouterr().out
    trained = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")}
    assert suite.main(argv) == 0
    assert trained == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("metrics.jsonl")}
