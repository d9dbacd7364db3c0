"""Copying a run to trackers, after the fact or while it trains."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.api.runs import Experiment, Session, Trial
from operant.errors import UsageError
from operant.run.layout import shown
from operant.run.run import Run, find_sessions, resolve
from operant.spec.load import load_mapping
from operant.spec.settings.trackers import TRACKERS, TrackerSpec, listed
from operant.trackers.position import read_positions
from operant.trackers.start import require_trackers, start_tracker

To = str | Sequence[str] | Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Tracked:
    """What a tracker's store now holds of a session; `error` is why it is not all."""

    session: Session
    tracker: str
    rows: int
    frames: int
    place: str
    error: str | None


def track(
    run: str | Path | Session | Trial | Experiment,
    to: To | None = None,
    *,
    follow: bool = False,
    root: str | Path = "runs",
) -> list[Tracked]:
    """Copy the rows, episodes and videos of a run to trackers: `track(run, to="wandb")`.

    `to` is a name, several names, or settings by name (`{"wandb": {"mode": "offline"}}`); None for those of the run's
    `meta.track`. What a tracker has already does not come twice. With `follow` it goes on until the run has ended.
    A tracker's failure is in the `error` of what is returned.
    """
    path = resolve(str(run), root) if isinstance(run, str | Path) else run.path
    sessions = find_sessions(path)
    trackers = trackers_for(sessions[0], to)
    require_trackers(trackers)
    return copied(sessions, trackers, follow=follow)


def trackers_for(run: Run, to: To | None, overrides: Sequence[str] = ()) -> tuple[TrackerSpec, ...]:
    """The settings of the trackers asked for: those of the run's spec, changed by `to` and `-s TRACKER.KEY=VALUE`."""
    own = {each["name"]: dict(each) for each in run.spec["meta"].get("track", [])}
    asked = {each["name"]: each for each in listed(to)} if to else own
    if not asked:
        raise UsageError(
            "the run's spec has no meta.track", place=shown(run.path), remedy=f"--to {' or --to '.join(TRACKERS)}"
        )
    for text in overrides:
        name = text.partition("=")[0].partition(".")[0]
        if name not in asked:
            raise UsageError(f"-s {text}: {name} is no tracker that is asked for", remedy=f"--to {name}")
    wanted = {name: _unnamed({**own.get(name, {}), **each}) for name, each in asked.items()}
    data = {"name": run.name, "meta": {"track": wanted}}
    return load_mapping(data, None, [f"meta.track.{text}" for text in overrides]).spec.meta.track


def copied(sessions: Sequence[Run], trackers: Sequence[TrackerSpec], *, follow: bool) -> list[Tracked]:
    """Run the trackers' processes to their end."""
    paths = [run.path.absolute() for run in sessions]
    processes = [start_tracker(settings, paths, once=not follow) for settings in trackers]
    try:
        for process in processes:
            process.communicate()
    except KeyboardInterrupt:
        _end(processes)
        raise
    return [_tracked(path, settings.name) for path in paths for settings in trackers]


def _tracked(path: Path, tracker: str) -> Tracked:
    at = read_positions(path).get(tracker)
    if at is None:
        return Tracked(Session(path), tracker, 0, 0, "", f"{tracker}: its process died")
    return Tracked(Session(path), tracker, at.rows, max(at.step, 0), at.place, at.error)


def _unnamed(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key != "name"}


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End them at once; what they have not sent comes with the next."""
    for process in processes:
        process.terminate()
        process.wait()
