"""The view of two episodes side by side, turn beside turn."""

from __future__ import annotations

import streamlit as st

from operant.app import cards, figures
from operant.app.place import COMPARE, TIMELINE, Place, button, go
from operant.app.timeline import MOST_CHOICES, NO_BAR, about, tiles
from operant.report.episodes import Catalogue, Entry
from operant.report.timeline import parting, side_by_side, steps


def show(catalogue: Catalogue, place: Place) -> None:
    """The two episodes that the address names; who is missing can be chosen."""
    st.title("Compare")
    names = catalogue.latest_names(MOST_CHOICES)
    if len(names) < 2:
        st.info("Two episodes are needed, and this run has fewer.")
        return
    chosen = _chosen(catalogue, place, names)
    if len(chosen) < 2:
        st.info("Choose two episodes.")
        return
    episodes = [catalogue.read(entry) for entry in chosen]
    names = [catalogue.name_of(entry) for entry in chosen]
    for column, name, episode, colour in zip(
        st.columns(2, gap="medium"), names, episodes, figures.SERIES, strict=False
    ):
        with column:
            st.html(cards.title(name, colour))
            st.caption(about(episode))
            tiles(episode)
            if episode.error:
                st.error(f"error: {episode.error}", icon=":material/error:")
            button("Open timeline", Place(TIMELINE, place.run, name), f"open {name}")
    drawn = [(name, steps(episode)) for name, episode in zip(names, episodes, strict=True)]
    st.plotly_chart(figures.rewards(drawn), width="stretch", config=NO_BAR)
    apart = parting(*episodes)
    st.markdown("**They are the same throughout.**" if apart is None else f"**They diverge at turn {apart}.**")
    st.html(cards.pairs(side_by_side(*episodes)))


def _chosen(catalogue: Catalogue, place: Place, names: list[str]) -> list[Entry]:
    given = [catalogue.find(name) if name else None for name in (place.episode, place.other)]
    found = [catalogue.name_of(entry) if entry else None for entry in given]
    for column, key, name in zip(st.columns(2, gap="medium"), ("left", "right"), found, strict=True):
        st.session_state[key] = name
        column.selectbox(
            key.capitalize(),
            names if name is None or name in names else [name, *names],
            index=None,
            key=key,
            placeholder="Choose an episode",
            on_change=_move,
            args=(place,),
        )
    return [entry for entry in given if entry is not None]


def _move(place: Place) -> None:
    go(Place(COMPARE, place.run, st.session_state["left"], st.session_state["right"]))
