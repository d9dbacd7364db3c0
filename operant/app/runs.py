"""The view of all runs: state, score with interval and curve of each, and the curve of the chosen one in full."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from operant.app import cards, figures
from operant.app.place import EPISODES, HISTORY, Place, button
from operant.errors import OperantError
from operant.report.formatting import compact, duration
from operant.report.plots import Line, trial_line
from operant.report.read import EVAL_SCORE, TRAIN_RETURN, TrialRecord, read_trial, trials_of
from operant.report.tables import ExperimentRow, experiment_rows
from operant.run.layout import METRICS_FILE

SPARK_POINTS = 40


def show(root: Path) -> None:
    """The list of runs under a folder, and one of them."""
    rows = experiment_rows(root)
    st.title("Runs")
    _tiles(rows)
    if not rows:
        st.info("There are records of models here, but no run. Choose one in the sidebar.")
        return
    chosen = st.dataframe(
        pd.DataFrame([_cells(row) for row in rows]),
        key="runs",
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "curve": st.column_config.LineChartColumn("curve", help="Scores of evaluations, or training returns."),
            "score": st.column_config.TextColumn("score", help="Mean over seeds with its 95% interval."),
        },
    )
    places = chosen["selection"]["rows"]
    _detail(root, rows[places[0] if places else 0])


def _tiles(rows: list[ExperimentRow]) -> None:
    states = [row.state for row in rows]
    counts = {state: f"{states.count(state):,}" for state in ("running", "done", "stopped", "failed")}
    st.html(cards.tiles({"runs": f"{len(rows):,}", **counts}))


def _cells(row: ExperimentRow) -> dict[str, object]:
    mark = "" if row.score_is_final or row.score is None else "~ "
    return {
        "run": f"{row.name}/{row.stamp}",
        "state": row.state,
        "seeds": f"{row.sessions_done}/{row.sessions}",
        "frames": compact(row.frames),
        "score": "-" if row.score is None else f"{mark}{row.score.text()}",
        "curve": _spark(row.path),
        "age": "-" if row.age is None else duration(row.age),
    }


def _detail(root: Path, row: ExperimentRow) -> None:
    run = row.path.relative_to(root).as_posix() if row.path != root else row.path.name
    title, episodes, history = st.columns([4, 1, 1], vertical_alignment="bottom")
    title.subheader(f"{row.name}/{row.stamp}")
    with episodes:
        button("Episodes", Place(EPISODES, run), "to_episodes", icon=":material/list:", width="stretch", type="primary")
    with history:
        button("Score history", Place(HISTORY, run), "to_history", icon=":material/show_chart:", width="stretch")
    if row.error:
        st.error(row.error)
    found = _line(row.path)
    if found is None:
        st.caption("There are no values to draw yet.")
    else:
        st.plotly_chart(figures.curve(*found), width="stretch", config={"displayModeBar": False})


def _spark(path: Path) -> list[float]:
    found = _line(path)
    if found is None:
        return []
    values = found[0].mean.y
    step = max(1, len(values) // SPARK_POINTS)
    return [float(value) for value in values[::step]]


def _line(path: Path) -> tuple[Line, str] | None:
    """The curve of the first trial: of evaluations, else of training; None where there is none yet."""
    try:
        trial = trials_of(path)[0]
        return _line_of(str(trial), _sizes(trial))
    except (OperantError, IndexError):
        return None


@st.cache_data(max_entries=256, show_spinner=False)
def _line_of(trial: str, sizes: tuple[int, ...]) -> tuple[Line, str] | None:
    """Read anew only when the files have grown: `sizes` is part of the name that Streamlit keeps the answer under."""
    del sizes
    record: TrialRecord = read_trial(Path(trial))
    for metric in (EVAL_SCORE, TRAIN_RETURN):
        if any(len(curve.x) > 1 for curve in record.curves(metric)):
            return trial_line(record.name, record, metric, "frames"), metric
    return None


def _sizes(trial: Path) -> tuple[int, ...]:
    return tuple(file.stat().st_size for file in sorted(trial.rglob(METRICS_FILE)))
