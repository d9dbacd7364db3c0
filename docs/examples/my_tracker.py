"""A tracker that writes a CSV file with the lines `frames,metric,value`.

    operant track ppo_cartpole --to my_tracker:CsvTracker

`open` reads back what the file holds: the process may have been killed after it wrote a line and before its position
was noted, or the run may have been resumed from a checkpoint, which takes back what came after it.
"""

from __future__ import annotations

from pathlib import Path

from operant.spec.fields import free
from operant.spec.settings.trackers import TrackerSpec
from operant.trackers.tracker import Batch, Held, Tracker


class CsvSettings(TrackerSpec):
    """Settings of the CSV tracker."""

    dir: str = free(default="csv", description="Folder of the files.")


class CsvTracker(Tracker):
    """A CSV file for each session."""

    SETTINGS = CsvSettings

    def open(self, step: int, rewound: bool) -> Held:
        path = Path(self.settings.dir) / f"{self.run_id}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.read_text().splitlines(keepends=True) if path.exists() else []
        lines = [line for line in written if line.endswith("\n")]
        if rewound:
            lines = [line for line in lines if int(line.split(",")[0]) <= step]
        path.write_text("".join(lines))
        self.place = str(path)
        self._file = path.open("a")
        return Held({line.split(",")[1]: int(line.split(",")[0]) for line in lines})

    def log(self, batch: Batch) -> None:
        self._file.writelines(f"{batch.step},{key},{value}\n" for key, value in batch.values.items())

    def flush(self) -> bool:
        self._file.flush()
        return True

    def close(self, state: str) -> None:
        self._file.close()
