"""TensorBoard: event files, written by the package tensorboard without TensorFlow or torch.

Events are never taken back. A process that starts anew begins another event file, whose first event says from which
step on earlier files no longer count; readers of TensorBoard drop those events.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from operant.run.disk import fsync_path
from operant.trackers.tables import Table, tables
from operant.trackers.tracker import Batch, Held, Tracker, video_key
from operant.trackers.videos import gif_frames

MAX_ROWS = 200
"""A text panel is a page of HTML, so the table of one step has at most so many episodes."""


class TensorBoardTracker(Tracker):
    """Event files in the session's `track/tensorboard`, or below one folder for all runs."""

    def open(self, step: int, rewound: bool) -> Held:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        folder = self._folder()
        self.place = str(folder)
        held = held_steps(folder)
        # Two files of one second would have one name.
        while any(f"tfevents.{int(time.time())}." in file.name for file in folder.glob("*tfevents*")):
            time.sleep(0.05)
        self._writer = EventFileWriter(str(folder), max_queue_size=1000)
        self._file = max(folder.glob("*tfevents*"), key=lambda file: file.name)
        if rewound:
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=step + 1, session_log=start))
            held = {key: min(last, step) for key, last in held.items()}
        return Held(held)

    def log(self, batch: Batch) -> None:
        for key, value in batch.values.items():
            self._add(batch.step, tag=key, simple_value=float(value))
        for key, table in tables(batch.episodes).items():
            self._add(batch.step, tag=key, **_text(_markdown(table)))
        for video in batch.videos:
            self._add(batch.step, tag=video_key(video), image=_animation(video))

    def flush(self) -> bool:
        self._writer.flush()
        fsync_path(self._file)
        return True

    def close(self, state: str) -> None:
        self._writer.close()
        fsync_path(self._file)

    def _add(self, step: int, **value: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        summary = Summary(value=[Summary.Value(**value)])
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def _folder(self) -> Path:
        if self.settings.dir is None:
            return self.folder / "tensorboard"
        return Path(self.settings.dir).absolute() / self.run_name


def held_steps(folder: Path) -> dict[str, int]:
    """The last step of each tag in the event files of a folder, without what a later file has taken back."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    held: dict[str, int] = {}
    for file in sorted(folder.glob("*tfevents*"), key=lambda file: file.name):
        for event in LegacyEventFileLoader(str(file)).Load():
            if event.HasField("session_log") and event.session_log.status == event.session_log.START:
                held = {key: min(last, event.step - 1) for key, last in held.items()}
            for value in event.summary.value:
                held[value.tag] = max(held.get(value.tag, -1), event.step)
    return held


def _text(words: str) -> dict[str, Any]:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto  # pyright: ignore[reportAttributeAccessIssue]
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue]
    from tensorboard.compat.proto.types_pb2 import DT_STRING  # pyright: ignore[reportAttributeAccessIssue]
    from tensorboard.plugins.text.metadata import create_summary_metadata

    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[words.encode("utf-8", "replace")], tensor_shape=shape)
    return {"tensor": tensor, "metadata": create_summary_metadata(display_name="", description="")}


def _markdown(table: Table) -> str:
    rows = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in table.rows[:MAX_ROWS]]
    more = len(table.rows) - MAX_ROWS
    rest = [f"\n{more:,} more in episodes.jsonl"] if more > 0 else []
    return "\n".join(["| " + " | ".join(table.columns) + " |", "|---" * len(table.columns) + "|", *rows, *rest])


def _cell(value: Any) -> str:
    """A value in one cell of Markdown."""
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", "<br>")


def _animation(video: Path) -> Any:
    """A video as the animated image that TensorBoard shows."""
    from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

    encoded, height, width = gif_frames(video)
    return Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=encoded)
