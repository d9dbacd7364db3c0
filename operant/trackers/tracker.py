"""What a tracker is: it copies one session's rows, episodes and videos into a store, each once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.run.layout import TRACK_FOLDER
from operant.run.run import Run
from operant.spec.settings.trackers import TrackerSpec


@dataclass(frozen=True)
class Batch:
    """What belongs to one frame: the numbers of a metric row, the episodes since the row before, new videos.

    `episodes` are rows as in episodes.jsonl.
    """

    step: int
    values: Mapping[str, float] = field(default_factory=dict)
    episodes: Sequence[Mapping[str, Any]] = ()
    videos: Sequence[Path] = ()

    def __bool__(self) -> bool:
        return bool(self.values or self.episodes or self.videos)


class Held:
    """What a store holds past the position: of each key the last step, and of every key at least `all_keys`.

    With `anew` the store was emptied, and everything is to be sent from the beginning. What is sent is held too, so
    that no key gets two values at one step.
    """

    def __init__(self, steps: Mapping[str, int] | None = None, *, all_keys: int = -1, anew: bool = False) -> None:
        self.steps = dict(steps or {})
        self.all_keys = all_keys
        self.anew = anew

    def missing(self, batch: Batch) -> Batch:
        """What of a batch is still to be sent."""
        return Batch(
            batch.step,
            {key: value for key, value in batch.values.items() if self._lacks(key, batch.step)},
            [row for row in batch.episodes if self._lacks(table_key(row), batch.step)],
            [video for video in batch.videos if self._lacks(video_key(video), batch.step)],
        )

    def add(self, batch: Batch) -> None:
        """A batch was sent."""
        keys = [*batch.values, *map(table_key, batch.episodes), *map(video_key, batch.videos)]
        self.steps.update(dict.fromkeys(keys, batch.step))

    def _lacks(self, key: str, step: int) -> bool:
        return step > max(self.steps.get(key, -1), self.all_keys)


class Tracker(ABC):
    """Copies one session into a store (abstract).

    The process opens it, logs batches in the order of their steps, and closes it. Whatever it raises is told in one
    line, and it is opened anew after a while. It may be killed at any moment: the next one is opened with the step of
    the last batch that `flush` promised, and should say what the store holds past that, lest it come twice.
    """

    SETTINGS: type[TrackerSpec] = TrackerSpec
    place: str = ""
    """Where a person finds it: an address or a folder."""

    def __init__(self, settings: Any, run: Run) -> None:
        self.settings = settings
        self.run = run

    @abstractmethod
    def open(self, step: int, rewound: bool) -> Held:
        """Open the store, in which everything up to `step` is known to be (-1: nothing).

        With `rewound` the run was resumed from a checkpoint: what the store holds past `step` is no longer true.
        """

    @abstractmethod
    def log(self, batch: Batch) -> None:
        """Take a batch."""

    def flush(self) -> bool:
        """Store what was logged; whether all of it now outlives this process."""
        return True

    def close(self, state: str) -> None:  # noqa: B027 - many have nothing to let go of
        """Store everything and let go; `state` is the session's: running, stopped, failed or done."""

    @property
    def folder(self) -> Path:
        """The session's folder for what trackers keep."""
        return self.run.path / TRACK_FOLDER

    @property
    def run_id(self) -> str:
        """A name of this session that no other run has, and that stays when its directory is moved."""
        facts = f"{self.run.document['created']} {self.run.name} {self.run.index} {self.run.seed}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @property
    def experiment(self) -> str:
        """ppo_cartpole/20260101-120000"""
        return "/".join(self.run.path.absolute().parent.parent.parts[-2:])

    @property
    def run_name(self) -> str:
        """ppo_cartpole/20260101-120000/trial_000/session_0"""
        return "/".join(self.run.path.absolute().parts[-4:])


def table_key(episode: Mapping[str, Any]) -> str:
    """The key of the table that an episode belongs to: episodes/train"""
    return f"episodes/{episode.get('split', 'train')}"


def video_key(video: Path) -> str:
    """The key of a video: media/frame_20480_seed_0"""
    return f"media/{video.stem}"
