from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("plotly", reason="plotly is not installed: pip install 'operant[app]'")

from operant.app import figures
from operant.report.episodes import Catalogue
from operant.report.history import histories
from operant.report.plots import trial_line
from operant.report.read import read_trial
from operant.report.timeline import steps
from operant.report.trees import trees
from tests.unit.report.trajectories import search, training, write_experiment


def traces(figure: Any) -> list[Any]:
    """What is drawn, without Plotly's hundred types."""
    return list(figure.data)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_experiment(root, "grpo", "20261115-180000", [list(training(seed)) for seed in range(2)])
    write_experiment(root, "search", "20261115-183000", [search()])
    return root


def test_rewards_are_bars_their_sum_a_line_and_faults_crosses() -> None:
    told = steps(search()[9])
    bars, line, crosses = traces(figures.rewards([("n9", told)]))
    assert (bars.name, line.name, crosses.name) == ("reward", "total", "fault")
    assert list(line.y) == [step.total for step in told if step.said]
    assert list(crosses.x) == [step.number for step in told if step.fault]


def test_two_episodes_are_told_apart_by_name() -> None:
    drawn = traces(figures.rewards([(each.id or "", steps(each)) for each in search()[:2]]))
    names = [trace.name for trace in drawn]
    assert names == ["n0: reward", "n0: total", "n1: reward", "n1: total", "n1: fault"]


def test_costs_are_tokens_and_seconds() -> None:
    told = steps(search()[0])
    written, read, seconds = traces(figures.costs(told))
    assert sum(written.y) == sum(step.tokens for step in told)
    assert sum(read.y) == sum(step.read for step in told if step.said)
    assert seconds.yaxis == "y2"


def test_a_tree_has_every_node_and_a_ring_around_the_chosen_one(runs: Path) -> None:
    (tree,) = trees(Catalogue.open(runs / "search" / "20261115-183000").entries)
    others, best, nodes = traces(figures.tree(tree, chosen=2))
    assert list(nodes.customdata) == [node.entry.full_name for node in tree.nodes if node.entry]
    assert [place for place, width in enumerate(nodes.marker.line.width) if width == 4] == [2]
    assert len(best.x) == 5 * (len(tree.chosen_path) - 1)
    assert len(others.x) + len(best.x) == 5 * (len(tree.nodes) - 1)


def test_a_history_has_a_line_and_a_shade_for_each_split(runs: Path) -> None:
    found = [
        each for each in histories(Catalogue.open(runs / "grpo" / "20261115-180000").entries) if each.task == "blotto"
    ]
    drawn = traces(figures.history(found, "frames"))
    assert [trace.name for trace in drawn if trace.name] == ["eval", "train"]
    assert list(drawn[1].y) == [point.estimate.point for point in found[0].points]


def test_a_learning_curve_has_its_seeds_and_their_mean(runs: Path) -> None:
    trial = read_trial(runs / "grpo" / "20261115-180000")
    line = trial_line("grpo", trial, "eval/score", "frames")
    drawn = traces(figures.curve(line, "eval/score"))
    assert len(drawn) == 2 + 2
    assert list(drawn[-1].y) == list(line.mean.y)
