"""The view of a run's episodes: filters, a table, and the way to one of them or two."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from operant.app import cards
from operant.app.place import COMPARE, TIMELINE, TREE, Place, button
from operant.report.episodes import Catalogue, Entry
from operant.report.filters import NEWEST, ORDERS, Filter, Range, select, values_of
from operant.report.formatting import compact, duration
from operant.report.stats import quick_interval
from operant.report.trees import tree_with

MOST_ROWS = 2000


def show(catalogue: Catalogue, place: Place) -> None:
    """Filters above, the table below, and buttons for what is selected in it."""
    entries = catalogue.entries
    st.title("Episodes")
    st.caption(place.run or "")
    if not entries:
        st.info("No episode was written here yet. Turn on *Follow a live run* to see the first one as it comes.")
        return
    wanted, order = _filters(entries)
    found = select(catalogue, wanted, order)
    _tiles(found)
    if catalogue.damaged:
        st.warning(f"{catalogue.damaged} lines of these files could not be read and are left out.")
    if not found:
        st.info("No episodes match.")
        return
    actions = st.container()
    rows = found[:MOST_ROWS]
    if len(found) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {len(found):,} are listed; narrow the filters to see others.")
    table = st.dataframe(
        pd.DataFrame([_cells(catalogue, entry) for entry in rows]),
        key="episodes",
        hide_index=True,
        width="stretch",
        height=min(640, 38 + 35 * len(rows)),
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="",
        column_config={
            "episode": st.column_config.TextColumn("episode", width="medium"),
            "task": st.column_config.TextColumn("task", width="small"),
            "score": st.column_config.NumberColumn("score", format="%.4f"),
            "seconds": st.column_config.NumberColumn("seconds", format="%.1f"),
        },
    )
    picked = [rows[number] for number in table["selection"]["rows"] if number < len(rows)]
    with actions:
        _actions(catalogue, place, picked)


def _filters(entries: Sequence[Entry]) -> tuple[Filter, str]:
    known = values_of(entries)
    with st.container(border=True):
        first = st.columns([2, 1.4, 1.4, 2.2, 2.2])
        task = first[0].selectbox("Task", known["task"], index=None, placeholder="every task", key="task")
        split = first[1].selectbox("Split", known["split"], index=None, placeholder="every split", key="split")
        ended = first[2].selectbox("Ended", known["ended"], index=None, placeholder="any way", key="ended")
        with first[3]:
            score = _range("Score", [entry.score for entry in entries], 0.01)
        with first[4]:
            version = _range("Policy version", [entry.version for entry in entries], 1.0, "%d")
        second = st.columns([2, 2.8, 1.4, 1.1, 1.1], vertical_alignment="bottom")
        item = second[0].text_input("Item", key="item", placeholder="blotto/eval/*")
        text = second[1].text_input("Text in any turn", key="text", placeholder="ValueError")
        order = second[2].selectbox("First", [NEWEST, *ORDERS], key="order")
        faulty = second[3].toggle("Faults", key="faulty")
        failed = second[4].toggle("Errors", key="failed")
    return Filter(task, item or None, split, ended, score, version, text or None, faulty, failed), order


def _range(label: str, values: Sequence[float | None], step: float, form: str = "%.2f") -> Range:
    """A slider over the values that occur; untouched, it leaves nothing out, not even what has no value."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0, 0)
    low, high = step * (low // step), step * -(-high // step)
    if low == high:
        st.text_input(label, form % low if known else "", disabled=True, key=f"{label} of all")
        return Range()
    chosen = st.slider(label, float(low), float(high), (float(low), float(high)), step, form, key=label)
    return Range(None if chosen[0] <= low else chosen[0], None if chosen[1] >= high else chosen[1])


def _tiles(found: Sequence[Entry]) -> None:
    scores = [entry.score for entry in found if entry.score is not None]
    faulty = sum(entry.faults > 0 for entry in found)
    tiles = {
        "episodes": f"{len(found):,}",
        "mean score over episodes": quick_interval(scores).text(3) if scores else "-",
        "with faults": f"{faulty / len(found):.0%}" if found else "-",
        "errors": f"{sum(entry.ended == 'error' for entry in found):,}",
        "tokens written": compact(sum(entry.tokens for entry in found)),
        "time": duration(sum(entry.took or 0.0 for entry in found)),
    }
    st.html(cards.tiles(tiles))


def _cells(catalogue: Catalogue, entry: Entry) -> dict[str, object]:
    return {
        "episode": catalogue.name_of(entry),
        "task": entry.env,
        "item": entry.item,
        "split": entry.split,
        "version": entry.version,
        "score": entry.score,
        "turns": entry.turns or entry.length,
        "tokens": entry.tokens,
        "seconds": entry.took,
        "faults": entry.faults,
        "ended": entry.ended,
        "error": entry.error,
    }


def _actions(catalogue: Catalogue, place: Place, picked: Sequence[Entry]) -> None:
    """One row is opened, two are compared; without any it is said how."""
    names = [catalogue.name_of(entry) for entry in picked]
    columns = st.columns([1.4, 1.4, 1.4, 4], vertical_alignment="center")
    first = names[0] if names else None
    with columns[0]:
        to = Place(TIMELINE, place.run, first)
        button("Open timeline", to, "open", disabled=len(names) != 1, type="primary", width="stretch")
    with columns[1]:
        to = Place(COMPARE, place.run, first, names[1] if len(names) > 1 else None)
        button("Compare two", to, "compare", disabled=len(names) != 2, width="stretch")
    with columns[2]:
        searched = len(picked) == 1 and tree_with(catalogue.entries, picked[0]) is not None
        button("Search tree", Place(TREE, place.run, first), "to_tree", disabled=not searched, width="stretch")
    columns[3].caption(" and ".join(names[:2]) if names else "Tick one row to open it, two to compare them.")
