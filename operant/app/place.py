"""Where the viewer is: one view of one run, held in the address, so that a link shows the same to a colleague."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

RUNS, EPISODES, TIMELINE, COMPARE, TREE, HISTORY = "runs", "episodes", "timeline", "compare", "tree", "history"
TITLES = {
    RUNS: "Runs",
    EPISODES: "Episodes",
    TIMELINE: "Timeline",
    COMPARE: "Compare",
    TREE: "Search tree",
    HISTORY: "Score history",
}


@dataclass(frozen=True)
class Place:
    """A view, the run it is of, and the one or two episodes that are looked at."""

    view: str = RUNS
    run: str | None = None
    episode: str | None = None
    other: str | None = None

    def as_query(self) -> dict[str, str]:
        """The place as the address has it."""
        return {key: value for key, value in vars(self).items() if value is not None}


def here() -> Place:
    """The place that the address names; without a view, the one that suits what else it says."""
    query = st.query_params
    run, episode, other = (query.get(key) or None for key in ("run", "episode", "other"))
    fitting = COMPARE if other else TIMELINE if episode else EPISODES if run else RUNS
    view = query.get("view")
    return Place(view if view in TITLES else fitting, run, episode, other)


def go(place: Place) -> None:
    """Move there; in a callback, before the page is drawn again."""
    st.query_params.from_dict(place.as_query())


def button(label: str, to: Place, key: str, **looks: Any) -> None:
    """A button that leads to a place."""
    st.button(label, key=key, on_click=go, args=(to,), **looks)
