"""The view of a search: its tree, the path to the best node, and the timeline of the node that is chosen."""

from __future__ import annotations

from typing import Any

import streamlit as st

from operant.app import cards, figures
from operant.app.place import TIMELINE, TREE, Place, button, go
from operant.app.timeline import NO_BAR, about, draw
from operant.report.episodes import Catalogue, Entry
from operant.report.formatting import score as score_text
from operant.report.trees import Tree, trees


def show(catalogue: Catalogue, place: Place) -> None:
    """The tree that has the episode of the address, or the first one."""
    st.title("Search tree")
    found = trees(catalogue.entries)
    if not found:
        st.info("There is no search in this run: none of its episodes continues another.")
        return
    chosen = catalogue.find(place.episode) if place.episode else None
    tree = next((each for each in found if each.place_of(chosen) is not None), found[0])
    _choice(catalogue, place, found, tree)
    _tiles(tree)
    at = tree.place_of(chosen)
    spot = tree.chosen_path[-1].place if at is None and tree.chosen_path else at
    clicked = st.plotly_chart(
        figures.tree(tree, spot),
        width="stretch",
        config=NO_BAR,
        key=f"tree {tree.first.full_name}",
        on_select="rerun",
        selection_mode="points",
    )
    _move_to_click(catalogue, place, clicked)
    end = "what the search answered" if tree.answer else "the best one"
    st.caption(f"Click a node to read it below. The thick path leads to {end}.")
    entry = None if spot is None else tree.nodes[spot].entry
    if entry is not None:
        _node(catalogue, place, entry)


def _choice(catalogue: Catalogue, place: Place, found: list[Tree], tree: Tree) -> None:
    """Which search, where there are several."""
    if len(found) == 1:
        return
    st.session_state["search"] = catalogue.name_of(tree.first)
    names = [catalogue.name_of(each.first) for each in found]
    st.selectbox("Search", names, key="search", on_change=_choose, args=(place,))


def _choose(place: Place) -> None:
    go(Place(TREE, place.run, st.session_state["search"]))


def _move_to_click(catalogue: Catalogue, place: Place, clicked: Any) -> None:
    """A click that is not where we are yet leads there."""
    points = [point for point in clicked["selection"]["points"] if point.get("customdata")]
    if not points:
        return
    data = points[0]["customdata"]
    entry = catalogue.find(data if isinstance(data, str) else data[0])
    last_clicked = st.session_state.get("clicked")
    st.session_state["clicked"] = entry.full_name
    if last_clicked != entry.full_name and place.episode != catalogue.name_of(entry):
        go(Place(TREE, place.run, catalogue.name_of(entry)))
        st.rerun()


def _tiles(tree: Tree) -> None:
    shown = {
        "task": tree.first.env,
        "item": tree.first.item or "-",
        "episodes": f"{sum(node.entry is not None for node in tree.nodes):,}",
        "depth": f"{max(node.depth for node in tree.nodes)}",
        "best score": score_text(tree.best.score if tree.best else None),
    }
    if tree.answer:
        shown["answer"] = score_text(tree.answer.score)
    st.html(cards.tiles(shown))


def _node(catalogue: Catalogue, place: Place, entry: Entry) -> None:
    episode, name = catalogue.read(entry), catalogue.name_of(entry)
    title, way = st.columns([5, 1], vertical_alignment="bottom")
    title.subheader(f"{entry.env} · {name}")
    with way:
        button("Open timeline", Place(TIMELINE, place.run, name), "open", width="stretch")
    st.caption(about(episode))
    draw(episode, name)
