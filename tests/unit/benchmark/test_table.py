"""Outcomes as a table: no figure is called met that is not, and the stored results of old stay readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tables
from operant.benchmark.load import load_suite
from operant.benchmark.outcome import read_outcome, training_return
from operant.benchmark.table import END, FILE, met, row, table, write_results
from operant.errors import UsageError
from operant.report.read import SessionRecord

SUITE = load_suite("classic")
FIRST, SECOND, *_ = SUITE.cells


def outcome(score: float, average: float | None, frames: int = 200_000, **more: Any) -> dict[str, Any]:
    def estimate(point: float) -> dict[str, Any]:
        return {"point": point, "low": point - 1, "high": point + 1, "n": 4}

    return {
        "cell": FIRST.name,
        "env": "CartPole-v1",
        "frames": frames,
        "published": 400.0,
        "published_frames": 200_000,
        "greedy": estimate(score),
        "sampled": estimate(score),
        "total_reward_ma": None if average is None else estimate(average),
        **more,
    }


@pytest.mark.parametrize(
    ("score", "average", "word"),
    [(400.0, 400.0, "yes"), (500.0, 399.9, "score only"), (399.9, 401.0, "ma only"), (10.0, 10.0, "no")],
)
def test_met_says_which_measure_reaches_the_published_figure(score: float, average: float, word: str):
    assert met(outcome(score, average)) == word


def test_a_published_score_asks_for_the_score_alone():
    assert met(outcome(500.0, 10.0, measure="score")) == "yes"
    assert met(outcome(10.0, 500.0, measure="score")) == "no"
    assert met(outcome(500.0, 10.0, published=None)) == ""


def test_a_reduced_budget_is_told_and_never_called_met():
    short = outcome(500.0, 500.0, frames=50_000)
    assert met(short) == "reduced budget, reached by score and ma"
    assert met(outcome(1.0, 1.0, frames=50_000)) == "reduced budget, not reached"
    assert "50,000 of 200,000" in row(short)


@pytest.mark.parametrize(
    ("seeds", "told"), [([4, 5, 6], "4 to 6"), ([0, 1], "0, 1"), ([7], "7"), ([0, 2, 3], "0, 2, 3"), (None, "4 seeds")]
)
def test_the_seeds_are_named_where_they_are_known(seeds: list[int] | None, told: str):
    more: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
    assert f"| 200,000 | {told} | 500.0" in row(outcome(500.0, 500.0, **more))


def test_a_cell_without_a_result_is_named(tmp_path: Path):
    (tmp_path / f"{FIRST.name}.json").write_text(json.dumps(outcome(500.0, None)))
    assert f"\nNot run: `{SECOND.name}`.\n" in table([FIRST, SECOND], tmp_path)
    assert "| - | 400.0 |" in table([FIRST], tmp_path)
    assert table([SECOND], tmp_path) == "Not run: any of its 1 cells.\n"


def test_other_text_and_other_suites_stay_in_the_file(tmp_path: Path):
    (tmp_path / f"{FIRST.name}.json").write_text(json.dumps(outcome(500.0, 500.0)))
    file = tmp_path / FILE
    file.write_text("# Ours\n\nBy hand.\n")
    for name in ("classic", "box2d", "classic"):
        write_results(load_suite(name), tmp_path)
    text = file.read_text()
    assert text.startswith("# Ours\n\nBy hand.\n")
    assert [text.count(END.format(name)) for name in ("classic", "box2d")] == [1, 1]
    assert text.count(f"| `{FIRST.name}` |") == 1


def test_the_repositorys_table_is_the_one_that_its_results_give():
    document = tables.DOCUMENT.read_text()
    assert tables.suites() in document
    assert tables.readme_table() in tables.README.read_text(), f"{tables.COMMAND} writes README.md"


def test_the_readme_counts_whole_budgets_only_and_each_by_what_it_reached(tmp_path: Path):
    outcomes = {
        "ppo_cartpole": outcome(401.0, 402.0),
        "dqn_cartpole": outcome(500.0, 10.0),
        "a2c_cartpole": outcome(10.0, 500.0),
        "sac_cartpole": outcome(10.0, 10.0),
        "sarsa_cartpole": outcome(500.0, 500.0, frames=50_000),
    }
    for name, one in outcomes.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**one, "cell": name}))
    text = tables.readme_table(tmp_path)
    first = "| `ppo_cartpole` | 200,000 | 4 seeds | 401.0 [400.0, 402.0] | 402.0 [401.0, 403.0] | 400.0 |"
    for part in (first, "4 were trained at the whole budget: 1 reach", "2 by one of the two, 1 by neither"):
        assert part in text


def test_each_algorithm_has_its_results_in_its_page():
    for page in tables.ALGORITHMS:
        assert tables.of_algorithm(page) in (tables.PAGES / f"{page}.md").read_text(), (
            f"{tables.COMMAND} writes {page}.md"
        )


def test_a_file_that_is_no_result_is_refused(tmp_path: Path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("nonsense")
    for cell in ("a", "b"):
        with pytest.raises(UsageError, match="this is not a result of a cell"):
            read_outcome(tmp_path, cell)
    assert read_outcome(tmp_path, "c") is None


def test_the_training_measure_averages_over_the_last_frames_however_many_rows_they_have():
    def session(rows: list[dict[str, Any]]) -> SessionRecord:
        return SessionRecord(Path(), "x", 0, 0, "done", None, 1, {}, None, rows, {}, {})

    rows = [{"frames": at, "updates": at, "train/return": float(at)} for at in (100, 200, 300, 1000)]
    assert training_return(session(rows), 750) == pytest.approx((300 + 1000) / 2)
    assert training_return(session([]), 750) is None
