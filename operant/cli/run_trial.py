"""Running a trial: start the sessions, show their progress, print the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from operant.cli.output import aside, document, plural, say

if TYPE_CHECKING:
    from operant.launch.stop_signals import StopSignals
    from operant.report.live import View
    from operant.run.run import Run

FINISHING = "stopping: each session finishes its update and saves; Ctrl-C again to stop now"
NOTHING_TO_FINISH = "stopping: nothing was trained since the last checkpoint, so each session ends now"


def run_trial(runs: Sequence[Run], until: int | None, *, as_json: bool, plain: bool) -> int:
    """Train these sessions, show their progress, print how it ended; returns the exit code."""
    from operant.api.handle import POLL_SECONDS, Handle
    from operant.cli.trial_summary import draw_figures, ending, ending_document
    from operant.launch.stop_signals import StopSignals
    from operant.launch.trial import exit_code
    from operant.run.layout import shown

    figures: dict[Path, list[Path]] = {}
    handle = Handle(runs, until, before_upload=lambda: figures.update(draw_figures(runs)))
    threads, show = runs[0].threads, aside if as_json else say
    place = shown(handle.path)
    if handle.together:
        show(f"{place}: {plural(len(runs), 'session')} in one program")
    else:
        show(f"{place}: {plural(handle.workers, 'session')} at a time, {plural(threads, 'thread')} each")
    # Requests to stop are counted to the end: an impatient second Ctrl-C must not cut off the next steps.
    with StopSignals() as signals:
        watch = _Watch(runs, signals, until, as_json=as_json, plain=plain)
        with watch.view:
            while not handle.join(POLL_SECONDS):
                handle.stop_requests = signals.count
                watch.tick(handle.tracker_news())
                watch.tell_upload(handle.uploading)
            watch.tick(handle.tracker_news())
        outcomes = handle.outcomes()
        code = exit_code(outcomes)
        if as_json:
            document(ending_document(outcomes, code, figures))
        else:
            say(*ending(outcomes, until, figures))
        tell_sync(handle.path)
        if handle.tracking:
            aside(f"tracking goes on in the background: {', '.join(handle.tracking)}")
    return code


def tell_sync(experiment: Path) -> None:
    """Where `meta.sync` has stored the run, or why not; nothing for a run without it."""
    from operant.store.status import status_line

    line = status_line(experiment)
    if line is not None:
        aside(line)


class _Watch:
    """Refreshes the view, and prints alerts and requests to stop as they come."""

    def __init__(
        self, runs: Sequence[Run], signals: StopSignals, until: int | None, *, as_json: bool, plain: bool
    ) -> None:
        from operant.report.tail import Tail
        from operant.run.layout import EVENTS_FILE

        self.view = _view([run.path for run in runs], until, as_json=as_json, plain=plain)
        self._runs = runs
        self._signals = signals
        self._told = 0
        self._uploading: str | None = None
        self._events = [(run.path.name, Tail(run.path / EVENTS_FILE)) for run in runs]
        for _, tail in self._events:
            tail.read()

    def tick(self, news: Sequence[str]) -> None:
        for line in news:
            aside(line)
        for name, tail in self._events:
            for event in tail.read():
                if event.get("kind") not in ("resume", "failed"):
                    aside(f"{name} {event.get('kind')}: {event.get('message')}")
        while self._told < min(self._signals.count, 2):
            aside(self._stopping())
            self._told += 1
        self.view.refresh()

    def tell_upload(self, url: str | None) -> None:
        """Say once that the sessions have ended and only the upload is waited for."""
        if url is not None and self._uploading is None:
            aside(f"training has ended; storing the rest at {url} (Ctrl-C leaves that to the background)")
            self._uploading = url

    def _stopping(self) -> str:
        """What the first and the second request to stop lead to, which depends on what there is to save."""
        from operant.cli.trial_summary import saved_words
        from operant.run.phase import read_phase

        if self._told:
            return f"stopping now; {saved_words(self._runs)}"
        phases = [read_phase(run.path) for run in self._runs if run.state == "running"]
        return NOTHING_TO_FINISH if all(phase and phase.interruptible for phase in phases) else FINISHING


def _view(paths: Sequence[Path], until: int | None, *, as_json: bool, plain: bool) -> View:
    from operant.report.live import PlainView, live_view

    stream = sys.stderr if as_json else sys.stdout
    if plain or as_json:
        return PlainView(paths, until, stream, launched=True)
    return live_view(paths, until, stream, launched=True)
