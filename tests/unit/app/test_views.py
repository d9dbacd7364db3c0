"""Every view as Streamlit draws it, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("streamlit", reason="streamlit is not installed: pip install 'operant[app]'")
pytest.importorskip("plotly", reason="plotly is not installed: pip install 'operant[app]'")

from streamlit.testing.v1 import AppTest

from tests.unit.report.trajectories import TITANIC, play, training, write_experiment, write_rows, write_runs

RESEARCH, SEARCH, LIVE = (
    "grpo_research/20261115-180000",
    "search_blotto/20261115-183000",
    "grpo_titanic/20261115-190000",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("app") / "runs")


def page(root: str) -> None:
    from pathlib import Path

    from operant.app.frame import show

    show(Path(root))


def opened(root: Path, **query: str) -> AppTest:
    app = AppTest.from_function(page, args=(str(root),), default_timeout=30)
    for key, value in query.items():
        app.query_params[key] = value
    return run(app)


def run(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception, app.exception
    return app


def address(app: AppTest) -> dict[str, str]:
    return {key: value[0] if isinstance(value, list) else value for key, value in app.query_params.items()}


def html_of(app: AppTest) -> str:
    return "".join(str(each.proto.body) for each in app.get("html"))


def table_of(app: AppTest) -> Any:
    """The table on the page, as pandas holds it."""
    return app.dataframe[0].value


def click(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click()
    return run(app)


def test_the_runs_and_the_way_to_their_episodes(runs: Path) -> None:
    app = opened(runs)
    assert app.title[0].value == "Runs"
    table = table_of(app)
    assert list(table["run"]) == [LIVE, SEARCH, RESEARCH]
    assert table["score"][2].startswith("0.7964 [")
    assert len(table["curve"][2]) > 1
    click(app, "to_episodes")
    assert address(app) == {"view": "episodes", "run": LIVE}
    assert app.title[0].value == "Episodes"


def test_the_list_of_episodes_and_its_filters(runs: Path) -> None:
    app = opened(runs, run=RESEARCH)
    assert len(table_of(app)) == 765
    app.selectbox(key="task").select("blotto")
    app.selectbox(key="split").select("eval")
    app.toggle(key="faulty").set_value(True)
    table = table_of(run(app))
    assert set(table["task"]) == {"blotto"}
    assert set(table["split"]) == {"eval"}
    assert min(table["faults"]) == 1
    app.text_input(key="text").set_value("no such words anywhere")
    assert "No episodes match." in [each.value for each in run(app).info]


def test_filters_by_score_and_version_leave_out_what_has_none(runs: Path) -> None:
    app = opened(runs, run=RESEARCH)
    app.slider(key="Score").set_range(0.9, app.slider(key="Score").max)
    table = table_of(run(app))
    assert 0 < len(table) < 765
    assert table["score"].min() >= 0.9


def test_nothing_is_opened_while_no_row_is_ticked(runs: Path) -> None:
    app = opened(runs, run=SEARCH)
    assert [app.button(key=key).disabled for key in ("open", "compare", "to_tree")] == [True] * 3


def test_the_timeline_of_an_episode(runs: Path) -> None:
    app = opened(runs, run=SEARCH, episode="n9")
    assert app.title[0].value == "blotto · n9"
    assert "continues n6" in app.caption[0].value
    html = html_of(app)
    assert "fault: the command failed (exit 1)" in html
    assert "Turn 7" in html
    click(app, "Next")
    assert address(app)["episode"] == "n10"
    click(app, "Previous")
    click(app, "to_tree")
    assert address(app) == {"view": "tree", "run": SEARCH, "episode": "n9"}


def test_a_timeline_without_a_name_is_of_the_newest_and_leads_to_a_comparison(runs: Path) -> None:
    app = opened(runs, view="timeline", run=SEARCH)
    assert app.title[0].value == "blotto · n14"
    app.selectbox(key="other").select("n3")
    run(app)
    assert address(app) == {"view": "compare", "run": SEARCH, "episode": "n14", "other": "n3"}


def test_an_error_is_shown_as_one(runs: Path) -> None:
    rows = (runs / RESEARCH / "trial_000/session_0/episodes.jsonl").read_text().splitlines()
    broken = next(row["id"] for row in map(json.loads, rows) if row["ended"] == "error")
    app = opened(runs, run=RESEARCH, episode=f"session_0/{broken}")
    assert "out of memory" in app.error[0].value


def test_two_side_by_side(runs: Path) -> None:
    app = opened(runs, run=SEARCH, episode="n1", other="n2")
    assert app.title[0].value == "Compare"
    assert any("They diverge at turn 2" in each.value for each in app.markdown)
    assert html_of(app).count("You are a careful researcher") == 1
    app.selectbox(key="right").select("n3")
    run(app)
    assert address(app)["other"] == "n3"


def test_a_comparison_of_nothing_asks_for_episodes(runs: Path) -> None:
    assert "Choose two episodes." in [each.value for each in opened(runs, view="compare", run=SEARCH).info]


def test_the_tree_and_the_node_below_it(runs: Path) -> None:
    app = opened(runs, view="tree", run=SEARCH)
    assert app.subheader[0].value == "blotto · n12"
    app = opened(runs, view="tree", run=SEARCH, episode="n4")
    assert app.subheader[0].value == "blotto · n4"
    told = [each.value for each in opened(runs, view="tree", run=RESEARCH).info]
    assert told == ["There is no search in this run: none of its episodes continues another."]


def test_the_history_of_every_task(runs: Path) -> None:
    app = opened(runs, view="history", run=RESEARCH)
    assert {"**blotto**", "**prisoners_dilemma**", "**titanic**"} <= {each.value for each in app.markdown}
    assert any("95% intervals over seeds" in each.value for each in app.caption)


@pytest.mark.parametrize("view", ["runs", "episodes", "timeline", "compare", "tree", "history"])
def test_every_view_of_a_game_without_words(tmp_path: Path, view: str) -> None:
    write_experiment(tmp_path, "games", "20260101-000000", [play(3)])
    opened(tmp_path, view=view, run="games/20260101-000000")


@pytest.mark.parametrize("view", ["runs", "episodes", "timeline", "compare", "tree", "history"])
def test_every_view_of_a_run_that_has_nothing_yet(tmp_path: Path, view: str) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    for file in place.rglob("*.jsonl"):
        file.write_text("")
    opened(tmp_path, view=view, run="games/20260101-000000")


def test_nothing_at_all_says_how_to_begin(tmp_path: Path) -> None:
    assert opened(tmp_path).title[0].value == "Nothing here yet"


def test_a_name_that_is_not_there_is_told_not_thrown(runs: Path) -> None:
    assert "There is no run 'gone'" in opened(runs, run="gone").error[0].value
    assert "did you mean n9?" in opened(runs, run=SEARCH, episode="n99").error[0].value
    assert opened(runs, view="odd", run=SEARCH).title[0].value == "Episodes"


def test_an_address_cannot_lead_out_of_the_folder(runs: Path, tmp_path: Path) -> None:
    write_rows(tmp_path / "episodes.jsonl", [each.as_dict() for each in play(1)])
    app = opened(runs, run=str(tmp_path))
    assert "There is no run" in app.error[0].value
    assert not app.dataframe


def test_the_sidebar_leads_from_view_to_view_and_run_to_run(runs: Path) -> None:
    app = opened(runs, run=SEARCH, episode="n9")
    app.radio(key="view").set_value("history")
    run(app)
    assert address(app) == {"view": "history", "run": SEARCH, "episode": "n9"}
    app.selectbox(key="run").select(RESEARCH)
    run(app)
    assert address(app) == {"view": "history", "run": RESEARCH}


def test_a_run_that_grows_is_seen_to_grow(tmp_path: Path) -> None:
    episodes = list(training(1, [TITANIC]))
    place = write_experiment(tmp_path, "live", "20260101-000000", [episodes[:5]], state="stopped")
    app = opened(tmp_path, run="live/20260101-000000")
    assert len(table_of(app)) == 5
    file = place / "trial_000/session_0/episodes.jsonl"
    write_rows(file, [each.as_dict() for each in episodes[5:9]])
    with file.open("a") as half:
        half.write('{"env": "titanic", "spl')
    assert len(table_of(run(app))) == 9


def test_one_file_of_episodes_is_enough(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "mine.jsonl", [each.as_dict() for each in play(2)])
    app = opened(file, run="mine.jsonl")
    assert len(table_of(app)) == 2
