"""Trackio: a local database that `trackio show` draws. Nothing of it needs a network.

Trackio warns where others raise, so what it holds is read back. After a resume from a checkpoint the run is deleted
there and written anew, from the run directory.
"""

from __future__ import annotations

import os
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.trackers.tables import tables
from operant.trackers.tracker import Batch, Held, Tracker, video_key

FLUSH_SECONDS = 30.0
DIR_VARIABLE = "TRACKIO_DIR"


class TrackioTracker(Tracker):
    """A run of Trackio."""

    def open(self, step: int, rewound: bool) -> Held:
        if self.settings.dir is not None:
            # Trackio reads it once, when it is first loaded.
            os.environ[DIR_VARIABLE] = str(Path(self.settings.dir).absolute())
        import trackio
        from trackio.sqlite_storage import SQLiteStorage  # pyright: ignore[reportMissingImports]
        from trackio.utils import TRACKIO_DIR  # pyright: ignore[reportMissingImports]

        self.place = f"{TRACKIO_DIR} project {self.settings.project}, run {self.run_name}"
        self._storage = SQLiteStorage
        if rewound:
            SQLiteStorage.delete_run(self.settings.project, self.run_name)
        held = self._held()
        with redirect_stdout(StringIO()):
            self._run: Any = trackio.init(  # pyright: ignore[reportAttributeAccessIssue]
                project=self.settings.project,
                name=self.run_name,
                group=self.settings.group or self.experiment,
                config={**self.run.spec, "seed": self.run.seed},
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        self._sent = self._stored()
        return Held(held, anew=rewound)

    def log(self, batch: Batch) -> None:
        import trackio

        values: dict[str, Any] = dict(batch.values)
        for key, table in tables(batch.episodes).items():
            values[key] = trackio.Table(columns=list(table.columns), data=[list(row) for row in table.rows])  # pyright: ignore[reportAttributeAccessIssue]
        for video in batch.videos:
            values[video_key(video)] = trackio.Video(str(video), format=video.suffix[1:])  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue]
        self._run.log(values, step=batch.step)
        self._sent += 1

    def flush(self) -> bool:
        """Wait until the database has the last row; `RunError` where it never gets there."""
        deadline = time.monotonic() + FLUSH_SECONDS
        while self._stored() < self._sent:
            if time.monotonic() > deadline:
                raise RunError("Trackio has not stored what it was given", place=self.place)
            time.sleep(0.1)
        return True

    def close(self, state: str) -> None:
        with redirect_stdout(StringIO()):
            self._run.finish()
        self.flush()

    def _stored(self) -> int:
        return self._storage.get_log_count(self.settings.project, self.run_name)

    def _held(self) -> dict[str, int]:
        held: dict[str, int] = {}
        for row in self._storage.get_logs(self.settings.project, self.run_name):
            held.update(dict.fromkeys(row, int(row["step"])))
        return held
