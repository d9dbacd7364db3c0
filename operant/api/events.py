"""What happens in a run as a stream of events, read from its directory: while it trains, or afterwards.

An observer lives in the process that asks, not in the one that trains: it may ask for a checkpoint or a stop, and
cannot change what is learnt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.api.runs import Experiment, Session, Trial, open
from operant.report.tail import Tail
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.layout import EPISODES_FILE, EVENTS_FILE, METRICS_FILE
from operant.run.requests import request

LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True)
class Row:
    """A metric row: `row["train/return"]`; `frames`, `updates` and `seconds` are among its values."""

    session: Session
    values: Mapping[str, Any]

    def __getitem__(self, metric: str) -> Any:
        return self.values[metric]

    def get(self, metric: str, default: Any = None) -> Any:
        """The value of a metric, or `default` where the row has none."""
        return self.values.get(metric, default)


@dataclass(frozen=True)
class EpisodeEnded:
    """An episode, as it is stored."""

    session: Session
    episode: Episode


@dataclass(frozen=True)
class CheckpointSaved:
    """A checkpoint that was published."""

    session: Session
    checkpoint: Checkpoint


@dataclass(frozen=True)
class Alert:
    """A message of a session: a resume, a number that is not finite, a failure."""

    session: Session
    kind: str
    message: str


@dataclass(frozen=True)
class StateChanged:
    """A session's state, first as it was found and then at every change."""

    session: Session
    state: str


Event = Row | EpisodeEnded | CheckpointSaved | Alert | StateChanged


def observe(run: str | Path | Session | Trial | Experiment, root: str | Path = "runs") -> Observer:
    """The events of a run from its beginning, and on until no session of it trains any more.

    After a resume that cut rows off, the rows come again from the start.
    """
    opened = open(run, root) if isinstance(run, str | Path) else run
    trials = opened.trials if isinstance(opened, Experiment) else [opened]
    return Observer([session for each in trials for session in _sessions(each)])


class Observer:
    """An iterator over events, each once, that can ask for a checkpoint or a stop."""

    def __init__(self, sessions: Sequence[Session], over: Callable[[], bool] | None = None) -> None:
        self._sessions = list(sessions)
        self._watches = [_Watch(session) for session in sessions]
        self._over = over or self._none_running

    def __iter__(self) -> Iterator[Event]:
        while True:
            over = self._over()
            yield from self.news()
            if over:
                return
            time.sleep(LOOK_EVERY_SECONDS)

    def news(self) -> list[Event]:
        """The events since the last look, without waiting."""
        return [event for watch in self._watches for event in watch.news()]

    def save(self) -> None:
        """Ask every session for a checkpoint after its present update."""
        for session in self._sessions:
            request(session.path, "save")

    def stop(self) -> None:
        """Ask every session to finish its update, save and end."""
        for session in self._sessions:
            request(session.path, "stop")

    def _none_running(self) -> bool:
        return all(session.state != "running" for session in self._sessions)


class _Watch:
    """One session's files, each followed from its beginning."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows = Tail(session.path / METRICS_FILE, first_look=None)
        self._episodes = Tail(session.path / EPISODES_FILE, first_look=None)
        self._alerts = Tail(session.path / EVENTS_FILE, first_look=None)
        self._saved: set[int] = set()
        self._state: str | None = None

    def news(self) -> Iterator[Event]:
        session = self._session
        yield from (EpisodeEnded(session, Episode.from_dict(row)) for row in self._episodes.read())
        yield from (Row(session, row) for row in self._rows.read())
        for saved in session.checkpoints():
            if saved.at.frames not in self._saved:
                self._saved.add(saved.at.frames)
                yield CheckpointSaved(session, saved)
        for row in self._alerts.read():
            yield Alert(session, str(row.get("kind")), str(row.get("message")))
        state = session.state
        if state != self._state:
            self._state = state
            yield StateChanged(session, state)


def _sessions(run: Session | Trial) -> list[Session]:
    return [run] if isinstance(run, Session) else run.sessions
