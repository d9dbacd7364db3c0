"""The frame around every view: the run that is looked at, the way from view to view, and keeping up with a live run."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from operant.app import comparison, history, listing, runs, timeline, tree
from operant.app.place import COMPARE, EPISODES, HISTORY, RUNS, TIMELINE, TITLES, TREE, Place, go, here
from operant.errors import OperantError
from operant.report.discovery import places
from operant.report.episodes import Catalogue
from operant.run.layout import shown

VIEWS = {
    EPISODES: listing.show,
    TIMELINE: timeline.show,
    COMPARE: comparison.show,
    TREE: tree.show,
    HISTORY: history.show,
}
FOLLOW_SECONDS = 2.0
# A file of our own: Streamlit fetches its named icons from elsewhere.
ICON = Path(__file__).with_name("icon.svg")
STYLE = """<style>
.stMainBlockContainer {padding-top: 1.2rem; padding-bottom: 3rem; max-width: 1500px}
.stMainBlockContainer h1 {font-size: 1.9rem; padding-bottom: .7rem}
header.stAppHeader {height: 0; min-height: 0; overflow: visible}
[data-testid=stSidebarHeader] {height: 1.6rem; margin-bottom: 0}
</style>"""


def show(root: Path) -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_title="Operant", page_icon=str(ICON), layout="wide")
    st.html(STYLE)
    known = places(root)
    place = here()
    run = place.run if place.run in known else None
    if place.run is not None and run is None:
        st.error(f"There is no run {place.run!r} under {shown(root)}.")
    _sidebar(root, list(known), place, run)
    try:
        _view(root, known, place, run)
    except OperantError as error:
        st.error(str(error))


def _view(root: Path, known: dict[str, Path], place: Place, run: str | None) -> None:
    if not known:
        st.title("Nothing here yet")
        st.markdown(f"There is no run under `{shown(root)}`. Start one, and this page will show it:")
        st.code("operant train grpo_tiny", language="sh")
    elif place.view == RUNS:
        runs.show(root)
    elif run is None:
        st.info("Choose a run in the sidebar.")
    else:
        catalogue = opened(known[run])
        if _is_followed():
            _follow(catalogue, len(catalogue.entries))
        VIEWS[place.view](catalogue, Place(place.view, run, place.episode, place.other))


@st.cache_resource(max_entries=16, show_spinner="Reading the episodes ...")
def _catalogue(path: str) -> Catalogue:
    return Catalogue(Path(path))


def opened(path: Path) -> Catalogue:
    """The catalogue of a run, up to date; only what is new is read."""
    catalogue = _catalogue(str(path.resolve()))
    catalogue.refresh()
    return catalogue


def _sidebar(root: Path, known: list[str], place: Place, run: str | None) -> None:
    with st.sidebar:
        st.markdown("### Operant")
        st.caption(shown(root))
        st.session_state["run"] = run
        st.selectbox(
            "Run", known, key="run", index=None, placeholder="Choose a run", on_change=_choose_run, args=(place,)
        )
        st.session_state["view"] = place.view
        st.radio(
            "View", list(TITLES), key="view", format_func=TITLES.__getitem__, on_change=_choose_view, args=(place,)
        )
        st.divider()
        st.toggle("Follow a live run", key="follow", help="Look for new episodes every two seconds.")
        st.button("Refresh", icon=":material/refresh:", help="Read what was written since.", width="stretch")


def _choose_run(place: Place) -> None:
    run = st.session_state["run"]
    view = EPISODES if place.view in (RUNS, TIMELINE, COMPARE) else place.view
    go(Place(view if run else RUNS, run))


def _choose_view(place: Place) -> None:
    go(Place(st.session_state["view"], place.run, place.episode, place.other))


def _is_followed() -> bool:
    return bool(st.session_state.get("follow"))


@st.fragment(run_every=FOLLOW_SECONDS)
def _follow(catalogue: Catalogue, known: int) -> None:
    """Draw the page anew when there are more episodes than it showed."""
    catalogue.refresh()
    if len(catalogue.entries) != known:
        st.rerun(scope="app")
