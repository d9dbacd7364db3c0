"""Weights & Biases: a run for each session, in a group for each experiment, with frames as the step.

Online a run is resumed by its id; the server says which step it holds, and rewinds to an earlier one, or where it
cannot a new run is begun in the same group. Offline there is only a file that W&B writes in blocks of 32 KiB and cannot
resume or rewind. Everything that it holds is in the run directory too, so a new process removes it and writes it anew
from the first row: there is always one folder to `wandb sync`, without a gap and without a row twice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from operant.run.disk import write_text
from operant.trackers.tables import Table, tables
from operant.trackers.tracker import Batch, Held, Tracker, video_key

FRAMES = "frames"
ID_FILE = "wandb.id"


class WandbTracker(Tracker):
    """A run of W&B."""

    def open(self, step: int, rewound: bool) -> Held:
        offline = self._is_offline()
        for folder in self._offline_folders() if offline else []:
            shutil.rmtree(folder)
        self._id = self._recorded_id()
        self._run: Any = self._start_or_replace(step, rewound, offline)
        self._run.define_metric(FRAMES, hidden=True)
        self._run.define_metric("*", step_metric=FRAMES)
        self._next = int(self._run.starting_step)
        if offline:
            self.place = str(Path(self._run.dir).parent)
            return Held(anew=True)
        self.place = self._run.url or ""
        if self._next == 0:
            return Held(anew=True)
        # `flush` promises nothing, so a position past the beginning is that of a run that was finished: all is there.
        return Held() if rewound or step >= self._next - 1 else Held(all_keys=self._next - 1)

    def log(self, batch: Batch) -> None:
        import wandb

        values: dict[str, Any] = {FRAMES: batch.step, **batch.values}
        for key, table in tables(batch.episodes).items():
            values[key] = wandb.Table(columns=list(table.columns), data=_rows(table), allow_mixed_types=True)
        for video in batch.videos:
            values[video_key(video)] = wandb.Video(str(video), format=video.suffix[1:])  # pyright: ignore[reportArgumentType]
        # A row that comes when W&B has closed its frame gets the next free step; its `frames` says where it belongs.
        self._next = max(self._next, batch.step)
        self._run.log(values, step=self._next)

    def flush(self) -> bool:
        """W&B sends and stores in its own time; only the end of the run promises anything."""
        return False

    def close(self, state: str) -> None:
        self._run.finish(exit_code=1 if state == "failed" else 0)

    def _start_or_replace(self, step: int, rewound: bool, offline: bool) -> Any:
        """The run; where the server cannot rewind it, another one, which gets everything from the beginning."""
        import wandb

        try:
            return self._start(step, rewound, offline)
        except wandb.Error:
            if not rewound or offline:
                raise
        self._id = f"{self.run_id}-{int(self._id.removeprefix(self.run_id).lstrip('-') or 1) + 1}"
        run = self._start(-1, False, offline)
        write_text(self.folder / ID_FILE, self._id)
        return run

    def _recorded_id(self) -> str:
        file = self.folder / ID_FILE
        return file.read_text(encoding="utf-8") if file.is_file() else self.run_id

    def _start(self, step: int, rewound: bool, offline: bool) -> Any:
        import wandb

        settings, folder = self.settings, self._folder()
        folder.mkdir(parents=True, exist_ok=True)
        resumed: dict[str, Any] = {} if offline else {"resume": "allow"}
        if rewound and not offline:
            resumed = {"resume_from": f"{self._id}?_step={max(step, 0)}"}
        return wandb.init(
            project=settings.project,
            entity=settings.entity,
            id=self._id,
            name=self.run_name,
            group=settings.group or self.experiment,
            job_type="train",
            tags=list(settings.tags),
            notes=settings.notes,
            config={**self.run.spec, "seed": self.run.seed},
            mode="offline" if offline else "online",
            dir=str(folder),
            reinit="create_new",
            settings=wandb.Settings(
                console="off",
                disable_code=True,
                disable_git=True,
                save_code=False,
                silent=True,
                x_disable_machine_info=True,
                x_disable_stats=True,
            ),
            **resumed,
        )

    def _is_offline(self) -> bool:
        return (self.settings.mode or os.environ.get("WANDB_MODE", "online")) == "offline"

    def _folder(self) -> Path:
        return self.folder if self.settings.dir is None else Path(self.settings.dir).absolute()

    def _offline_folders(self) -> list[Path]:
        """What earlier processes wrote of this run."""
        return list((self._folder() / "wandb").glob(f"offline-run-*-{self.run_id}"))


def _rows(table: Table) -> Any:
    return [list(row) for row in table.rows]
