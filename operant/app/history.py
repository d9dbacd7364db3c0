"""The view of scores over training, a picture for each task."""

from __future__ import annotations

from typing import cast

import streamlit as st

from operant.app import figures
from operant.app.place import Place
from operant.app.timeline import NO_BAR
from operant.report.episodes import Catalogue
from operant.report.formatting import score as score_text
from operant.report.history import AXES, Axis, History, histories


def show(catalogue: Catalogue, place: Place) -> None:
    """Every task with its splits, against frames, updates or policy versions."""
    st.title("Score history")
    axis = cast("Axis", st.segmented_control("Against", list(AXES), default="frames", key="axis") or "frames")
    found = histories(catalogue.entries, axis)
    if not found:
        st.info(f"No episode here has a score and {axis}.")
        return
    over = " and ".join(sorted({each.over for each in found}))
    st.caption(f"{place.run}  ·  Shades are 95% intervals over {over}; episodes that ended in an error have no score.")
    tasks = list(dict.fromkeys(each.task for each in found))
    columns = st.columns(2 if len(tasks) > 1 else 1, gap="medium")
    for number, task in enumerate(tasks):
        with columns[number % len(columns)], st.container(border=True):
            _task(task, [each for each in found if each.task == task], axis)


def _task(task: str, found: list[History], axis: str) -> None:
    st.markdown(f"**{task}**")
    st.caption("  ·  ".join(_line(each) for each in found))
    st.plotly_chart(figures.history(found, axis), width="stretch", config=NO_BAR, key=f"history {task}")


def _line(found: History) -> str:
    """`eval 0.1200 to 0.8400`."""
    if not found.points:
        return f"{found.split}: no scores"
    first, last = found.points[0].estimate, found.points[-1].estimate
    ends = f"{score_text(first.point)} to {score_text(last.point)}" if len(found.points) > 1 else score_text(last.point)
    return f"{found.split} {ends}"
