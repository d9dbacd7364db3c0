"""A trial from its start to its last word: sessions run, a view watches, and the end is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from operant.cli.output import aside, document, plural, say

if TYPE_CHECKING:
    from operant.launch.stop_signals import StopPresses
    from operant.report.live import View
    from operant.run.run import Run

FINISHING = "stopping: each session finishes its update and saves; Ctrl-C again to stop now"
NOTHING_TO_FINISH = "stopping: nothing was trained since the last checkpoint, so each session ends now"


def conduct(runs: Sequence[Run], *, until: int | None, as_json: bool, plain: bool) -> int:
    """Train `runs` within the machine's cores, show their progress, tell how it ended; returns the exit code."""
    from operant.cli.trial_summary import ending, ending_document
    from operant.engines import trains_together
    from operant.launch.budget import share
    from operant.launch.local import LocalLauncher
    from operant.launch.stop_signals import StopPresses
    from operant.launch.trial import exit_code, run_sessions
    from operant.run.layout import shown
    from operant.spec.stored import stored

    together = len(runs) > 1 and trains_together(stored(runs[0].spec))
    threads, processes = runs[0].threads, runs[0].spec["meta"].get("processes", 1)
    workers = share(len(runs), threads, processes=processes).workers
    tell = aside if as_json else say
    place = shown(runs[0].path.parent.parent)
    if together:
        tell(f"{place}: {plural(len(runs), 'session')} in one program")
    else:
        tell(f"{place}: {plural(workers, 'session')} at a time, {plural(threads, 'thread')} each")
    # Requests to stop are counted to the last word: an impatient second Ctrl-C must not cut off how to go on.
    with StopPresses() as presses:
        watch = _Watch(runs, presses, until, as_json=as_json, plain=plain)
        with watch.view:
            outcomes = run_sessions(
                runs, LocalLauncher(), workers, presses, until=until, tick=watch.tick, together=together
            )
        code = exit_code(outcomes)
        if as_json:
            document(ending_document(outcomes, code))
        else:
            say(*ending(outcomes, until))
    return code


class _Watch:
    """Refreshes the view, and tells of alerts and requests to stop as they come."""

    def __init__(
        self, runs: Sequence[Run], presses: StopPresses, until: int | None, *, as_json: bool, plain: bool
    ) -> None:
        from operant.report.tail import Tail
        from operant.run.layout import EVENTS_FILE

        self.view = _view([run.path for run in runs], until, as_json=as_json, plain=plain)
        self._runs = runs
        self._presses = presses
        self._told = 0
        self._events = [(run.path.name, Tail(run.path / EVENTS_FILE)) for run in runs]
        for _, tail in self._events:
            tail.read()

    def tick(self) -> None:
        for name, tail in self._events:
            for event in tail.read():
                if event.get("kind") not in ("resume", "failed"):
                    aside(f"{name} {event.get('kind')}: {event.get('message')}")
        while self._told < min(self._presses.count, 2):
            aside(self._stopping())
            self._told += 1
        self.view.refresh()

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
