"""Weights & Biases: a run for each session, in a group for each experiment, with frames as the step.

Online a run is resumed by its id; the server says which step it holds, and rewinds to an earlier one. Offline there is
only a file that W&B writes in blocks of 32 KiB and cannot resume or rewind. Everything that it holds is in the run
directory too, so a new process removes it and writes it anew from the first row: there is always one folder to
`wandb sync`, without a gap and without a row twice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from operant.trackers.tables import tables
from operant.trackers.tracker import Batch, Held, Tracker, video_key

FRAMES = "frames"


class WandbTracker(Tracker):
    """A run of W&B."""

    def open(self, step: int, rewound: bool) -> Held:
        offline = self._is_offline()
        for folder in self._offline_folders() if offline else []:
            shutil.rmtree(folder)
        self._run: Any = self._start(step, rewound, offline)
        self._run.define_metric(FRAMES, hidden=True)
        self._run.define_metric("*", step_metric=FRAMES)
        self._next = int(self._run.starting_step)
        if offline:
            self.place = str(Path(self._run.dir).parent)
            return Held(anew=True)
        self.place = self._run.url or ""
        # `flush` promises nothing, so a position past the beginning is that of a run that was finished: all is there.
        return Held() if rewound or step >= self._next - 1 else Held(all_keys=self._next - 1)

    def log(self, batch: Batch) -> None:
        import wandb

        values: dict[str, Any] = {FRAMES: batch.step, **batch.values}
        for key, table in tables(batch.episodes).items():
            values[key] = wandb.Table(columns=list(table.columns), data=[list(row) for row in table.rows])
        for video in batch.videos:
            values[video_key(video)] = wandb.Video(str(video), format=video.suffix[1:])
        # A row that comes when W&B has closed its frame gets the next free step; its `frames` says where it belongs.
        self._next = max(self._next, batch.step)
        self._run.log(values, step=self._next)

    def flush(self) -> bool:
        """W&B sends and stores in its own time; only the end of the run promises anything."""
        return False

    def close(self, state: str) -> None:
        self._run.finish(exit_code=1 if state == "failed" else 0)

    def _start(self, step: int, rewound: bool, offline: bool) -> Any:
        import wandb

        settings, folder = self.settings, self._folder()
        folder.mkdir(parents=True, exist_ok=True)
        resumed = {} if offline else {"resume": "allow"}
        if rewound and not offline and step >= 0:
            resumed = {"resume_from": f"{self.run_id}?_step={step}"}
        return wandb.init(
            project=settings.project,
            entity=settings.entity,
            id=self.run_id,
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
