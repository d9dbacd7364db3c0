"""The view of one episode: what it came to, rewards and costs by turn, and every turn."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from operant.app import cards, figures
from operant.app.place import COMPARE, TIMELINE, TREE, Place, button, go
from operant.report.episodes import Catalogue, Entry, newest_first
from operant.report.formatting import duration
from operant.report.formatting import score as score_text
from operant.report.timeline import Step, steps, totals
from operant.report.trees import tree_with
from operant.run.episode import Episode

NO_BAR = {"displayModeBar": False}
MOST_CHOICES = 1000  # a longer list would be slow to send, and nobody reads it


def show(catalogue: Catalogue, place: Place) -> None:
    """The episode that the address names, or the newest one."""
    entries = catalogue.entries
    if not entries:
        st.info("No episode was written here yet.")
        return
    entry = catalogue.find(place.episode) if place.episode else entries[-1]
    episode = catalogue.read(entry)
    st.title(f"{entry.env} · {catalogue.name_of(entry)}")
    st.caption(about(episode))
    _ways(catalogue, place, entry)
    draw(episode, catalogue.name_of(entry))


def draw(episode: Episode, name: str) -> None:
    """The episode without the way to others."""
    tiles(episode)
    if episode.error:
        st.error(f"error: {episode.error}", icon=":material/error:")
    shown = steps(episode)
    if not shown:
        st.info("No turns were kept of this episode.")
        return
    _pictures(name, shown)
    st.html(cards.timeline(shown))


def _pictures(name: str, shown: Sequence[Step]) -> None:
    """Costs, and before them rewards where any turn could earn one."""
    drawn = [figures.rewards([(name, shown)])] if any(step.reward is not None for step in shown) else []
    drawn.append(figures.costs(shown))
    for number, (column, figure) in enumerate(zip(st.columns(len(drawn)), drawn, strict=True)):
        column.plotly_chart(figure, width="stretch", config=NO_BAR, key=f"picture {number}")


def about(episode: Episode) -> str:
    """Item, split, policy and the moment of training in one line."""
    facts = [
        f"item {episode.item}" if episode.item else "",
        episode.split,
        f"policy version {episode.version}" if episode.version is not None else "",
        f"frame {episode.at.frames:,}, update {episode.at.updates:,}",
        f"seed {episode.seed}" if episode.seed is not None else "",
        f"continues {episode.parent}" if episode.parent else "",
        episode.ended,
    ]
    return "  ·  ".join(fact for fact in facts if fact)


def tiles(episode: Episode) -> None:
    """The score, what it is made of, and what it cost."""
    found = totals(episode)
    shown = {
        "score": score_text(episode.score),
        "reward": "-" if found.reward is None else f"{found.reward:+.3g}",
        "turns": f"{found.turns:,}" if episode.turns else f"{episode.length:,}",
        "tokens out / in": f"{found.written:,} / {found.read or '-'}",
        "faults": f"{found.faults:,}",
        "time": "-" if found.seconds is None else duration(found.seconds),
    }
    st.html(cards.tiles(shown))
    if episode.parts:
        st.caption("  ·  ".join(f"{name} **{value:g}**" for name, value in episode.parts.items()))


def _ways(catalogue: Catalogue, place: Place, entry: Entry) -> None:
    """To the episodes before and after, to a comparison and to the search."""
    entries = catalogue.entries
    number = next(number for number, each in enumerate(entries) if each is entry)
    before, after, searched, other = st.columns([1, 1, 1.2, 4], vertical_alignment="bottom")
    for column, label, beside in ((before, "Previous", number - 1), (after, "Next", number + 1)):
        there = 0 <= beside < len(entries)
        to = Place(TIMELINE, place.run, catalogue.name_of(entries[beside]) if there else None)
        with column:
            button(label, to, label, disabled=not there, width="stretch")
    with searched:
        is_searched = tree_with(entries, entry) is not None
        to = Place(TREE, place.run, catalogue.name_of(entry))
        button("Search tree", to, "to_tree", disabled=not is_searched, width="stretch")
    with other:
        others = [each for each in newest_first(entries) if each.env == entry.env and each is not entry]
        alike = [catalogue.name_of(each) for each in others[:MOST_CHOICES]]
        st.session_state["other"] = None
        st.selectbox(
            "Compare with",
            alike,
            index=None,
            key="other",
            placeholder="Compare with another episode of this task",
            label_visibility="collapsed",
            on_change=_compare,
            args=(place, catalogue.name_of(entry)),
        )


def _compare(place: Place, name: str) -> None:
    if st.session_state["other"]:
        go(Place(COMPARE, place.run, name, st.session_state["other"]))
