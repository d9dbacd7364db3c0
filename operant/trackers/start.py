"""Starting the processes of trackers beside training, and what has come of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from operant.errors import UsageError
from operant.install import missing_package
from operant.run.followers import search_path
from operant.run.run import Run
from operant.spec.settings.trackers import TrackerSpec
from operant.trackers.follow import log_file
from operant.trackers.position import read_positions
from operant.trackers.process import FOLLOW, ONCE

MAX_RESTARTS = 3
RESTART_SECONDS = 5.0


def missing_for(trackers: Sequence[TrackerSpec]) -> UsageError | None:
    """The error that names the install command, where the package of a tracker is absent."""
    absent = ((each, module) for each in trackers for module in each.NEEDS if not _is_installed(module))
    return next((missing_package(module, f"the tracker {each.name}") for each, module in absent), None)


def require_trackers(trackers: Sequence[TrackerSpec]) -> None:
    """Refuse, before anything is written, trackers whose package is absent."""
    missing = missing_for(trackers)
    if missing is not None:
        raise missing


def start_tracker(settings: TrackerSpec, sessions: Sequence[Path], *, once: bool = False) -> subprocess.Popen[bytes]:
    """The process of one tracker for these sessions; the end of its standard input tells it that no more will come."""
    log = log_file(sessions[0], settings.name)
    log.parent.mkdir(exist_ok=True)
    arguments = [ONCE if once else FOLLOW, json.dumps(settings.model_dump(mode="json")), *map(str, sessions)]
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "operant.trackers.process", *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": search_path()},
            start_new_session=True,
        )


@dataclass
class _Running:
    settings: TrackerSpec
    process: subprocess.Popen[bytes]
    restarts: int = 0
    restart_at: float | None = None

    def close_input(self) -> None:
        """Tell it that no more sessions will be started."""
        if self.process.stdin is not None:
            self.process.stdin.close()


class TrackerProcesses:
    """The trackers of a trial while it trains. None of them can fail it: what goes wrong is a line of `news`."""

    def __init__(self, runs: Sequence[Run], trackers: Sequence[TrackerSpec]) -> None:
        self.trial = runs[0].path.parent.name
        self._sessions = [run.path.absolute() for run in runs]
        self._told: dict[tuple[Path, str], str] = {}
        self._failed: list[str] = []
        self._running = [each for settings in trackers if (each := self._start(settings)) is not None]

    def news(self) -> list[str]:
        """Failures since the last call, in one line each."""
        lines, self._failed = self._failed, []
        for session in self._sessions if self._running else []:
            for tracker, position in read_positions(session).items():
                if position.error and self._told.get((session, tracker)) != position.error:
                    self._told[session, tracker] = position.error
                    lines.append(f"{session.name} track {position.error}")
        return lines

    def advance(self) -> None:
        """Start those again that died."""
        for each in self._running:
            code = each.process.poll()
            if code in (None, 0) or each.restarts >= MAX_RESTARTS:
                continue
            if each.restart_at is None:
                each.restart_at = time.monotonic() + RESTART_SECONDS
            elif time.monotonic() >= each.restart_at:
                self._restart(each)

    def finish(self, seconds: float) -> list[str]:
        """Say that no more will come and wait a little; the names of those that go on in the background.

        One that was killed, and whose restart has not come yet, is started for what it has not sent.
        """
        for each in self._running:
            if (each.process.poll() or 0) < 0 and each.restarts < MAX_RESTARTS:
                self._restart(each)
            each.close_input()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(each.process.poll() is None for each in self._running):
            time.sleep(0.05)
        left = [each for each in self._running if each.process.poll() is None]
        for each in left:
            each.process.returncode = 0  # it outlives us, and nobody will ask
        return [each.settings.name for each in left]

    def _restart(self, each: _Running) -> None:
        each.restarts, each.restart_at = each.restarts + 1, None
        each.close_input()
        again = self._start(each.settings)
        each.process = again.process if again else each.process

    def _start(self, settings: TrackerSpec) -> _Running | None:
        try:
            return _Running(settings, start_tracker(settings, self._sessions))
        except OSError as problem:
            self._failed.append(f"track {settings.name}: {problem}")
            return None


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None
