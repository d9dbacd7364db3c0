from __future__ import annotations

from pathlib import Path

import pytest

from operant.errors import UsageError
from operant.report.episodes import Catalogue
from operant.report.filters import Filter, Range, select, values_of
from tests.unit.report.trajectories import training, write_rows


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    rows = [each.as_dict() for each in training(0)]
    return Catalogue.open(write_rows(tmp_path_factory.mktemp("run") / "episodes.jsonl", rows))


@pytest.mark.parametrize(
    ("text", "low", "high"), [("0.2..0.8", 0.2, 0.8), ("0.5..", 0.5, None), ("..0", None, 0.0), ("3", 3.0, 3.0)]
)
def test_ranges_as_they_are_typed(text: str, low: float | None, high: float | None) -> None:
    assert Range.parse(text, "--score") == Range(low, high)


@pytest.mark.parametrize("text", ["", "high", "1..2..3", "0.5-0.8"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no range of numbers"):
        Range.parse(text, "--score")


def test_an_unknown_value_is_in_no_range_with_an_end() -> None:
    assert Range().holds(None)
    assert not Range(low=0.0).holds(None)
    assert not Range(high=0.0).holds(None)


def test_each_filter_leaves_out_what_it_should(catalogue: Catalogue) -> None:
    def scores(**wanted: object) -> list[float | None]:
        return [entry.score for entry in select(catalogue, Filter(**wanted))]  # type: ignore[arg-type]

    every = catalogue.entries
    assert len(scores()) == len(every)
    assert len(scores(task="blotto")) == sum(entry.env == "blotto" for entry in every)
    assert len(scores(task="b*")) == len(scores(task="blotto"))
    assert len(scores(task="Blotto")) == 0
    assert len(scores(item="*/eval/3")) == sum((entry.item or "").endswith("/eval/3") for entry in every)
    assert len(scores(split="eval")) == sum(entry.split == "eval" for entry in every)
    assert len(scores(ended="truncated")) == sum(entry.ended == "truncated" for entry in every)
    assert min(score or 0.0 for score in scores(score=Range(0.7, None))) >= 0.7
    assert len(scores(version=Range(20, 30))) == sum(20 <= (entry.version or 0) <= 30 for entry in every)
    assert len(scores(faulty=True)) == sum(entry.faults > 0 for entry in every)
    assert scores(failed=True) == [None] * sum(entry.ended == "error" for entry in every)


def test_text_is_looked_for_in_every_turn_fault_and_error(catalogue: Catalogue) -> None:
    def found(text: str) -> int:
        return len(select(catalogue, Filter(text=text)))

    assert 0 < found("mismatch in its core dimension") < len(catalogue.entries)
    assert found("MISMATCH in its core") == found("mismatch in its core")
    assert found("out of memory") == sum(entry.ended == "error" for entry in catalogue.entries)
    assert 0 < found("no action: answer with one tool call") < len(catalogue.entries)
    assert found('"role"') == 0
    assert found("files first.\n```bash") == len(catalogue.entries)


def test_orders(catalogue: Catalogue) -> None:
    best, worst = (select(catalogue, Filter(), order)[0].score for order in ("best", "worst"))
    known = [entry.score for entry in catalogue.entries if entry.score is not None]
    assert (best, worst) == (max(known), min(known))
    slowest = select(catalogue, Filter(), "slowest")[0].took
    assert slowest == max(entry.took or 0.0 for entry in catalogue.entries)
    assert select(catalogue, Filter(), "longest")[0].turns == max(entry.turns for entry in catalogue.entries)
    assert select(catalogue, Filter())[0].line == len(catalogue.entries)
    with pytest.raises(UsageError, match="there is no order 'odd'"):
        select(catalogue, Filter(), "odd")


def test_what_can_be_chosen_from(catalogue: Catalogue) -> None:
    found = values_of(catalogue.entries)
    assert found["task"] == ["blotto", "prisoners_dilemma", "titanic"]
    assert found["split"] == ["eval", "train"]


def test_a_run_without_episodes_has_none_to_select(tmp_path: Path) -> None:
    assert select(Catalogue.open(tmp_path), Filter(text="x")) == []
