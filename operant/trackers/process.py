"""The process of one tracker: `python -m operant.trackers.process SETTINGS SESSION...`.

It lives beside training and shares nothing with it but files. Its standard input is held open by the launcher: when it
closes, however the launcher ended, no more sessions will be started, and the process ends once those that run have
ended and everything is written.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from operant.run.run import Run
from operant.spec.settings.trackers import TRACKERS, TrackerSpec
from operant.trackers.follow import Follower

LOOK_EVERY_SECONDS = 0.5
ONCE, FOLLOW = "once", "follow"
EXIT_FAILED, EXIT_HANGS = 1, 3


def main(arguments: Sequence[str]) -> int:
    """Follow the sessions to their end, or with `once` to where they are now; 1 if one could not be tracked."""
    how, settings, *sessions = arguments
    # Ctrl-C and a closed terminal end the launcher, which this process outlives until everything is written.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(5)
    for session in sessions:
        Run.open(Path(session))  # says where own modules lie
    return follow(parsed(settings), [Path(session) for session in sessions], once=how == ONCE)


def parsed(settings: str) -> TrackerSpec:
    """The settings of a tracker that were handed over as JSON."""
    data = json.loads(settings)
    return TRACKERS.find(data["name"]).model_validate(data)


def follow(settings: TrackerSpec, sessions: Sequence[Path], *, once: bool) -> int:
    """Look at each session in turn until all are complete."""
    followers = [Follower(settings, session, patient=not once) for session in sessions]
    threading.Thread(target=_end_hanging, args=(followers, settings.timeout), daemon=True).start()
    while True:
        # Looked at before the files, so that what the last process wrote is not missed.
        last = once or (_launcher_gone() and not any(_is_running(each.session) for each in followers))
        for follower in followers:
            follower.look(last)
        if all(follower.complete or follower.gave_up for follower in followers):
            return EXIT_FAILED if any(follower.gave_up for follower in followers) else 0
        time.sleep(LOOK_EVERY_SECONDS)


def _end_hanging(followers: Sequence[Follower], timeout: float) -> None:
    """End the process when a call into a tracker does not return; a launcher that is there starts another."""
    while True:
        for follower in followers:
            begun = follower.called_at
            if begun is not None and time.monotonic() - begun > timeout:
                follower.tell_hang(timeout)
                os._exit(EXIT_HANGS)
        time.sleep(min(timeout, 1.0))


def _launcher_gone() -> bool:
    """Whether standard input was closed at its other end."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


def _is_running(session: Path) -> bool:
    try:
        return Run.open(session).state == "running"
    except Exception:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
