"""What a TensorBoard log holds, read with TensorBoard's own readers."""

from __future__ import annotations

import numpy as np

from operant.run.run import Run

Points = dict[str, list[tuple[int, float]]]


def accumulated(run: Run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    limits = {"scalars": 0, "tensors": 0, "images": 0}
    return EventAccumulator(str(run.path / "track" / "tensorboard"), size_guidance=limits).Reload()


def scalars(run: Run) -> Points:
    found = accumulated(run)
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def raw_values(run: Run) -> list[tuple[str, int]]:
    """Every tag and step of the files, whatever a reader makes of them."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    files = sorted((run.path / "track" / "tensorboard").iterdir())
    events = (event for file in files for event in LegacyEventFileLoader(str(file)).Load())
    return [(value.tag, event.step) for event in events for value in event.summary.value]


def as_float32(points: Points) -> Points:
    return {key: [(step, float(np.float32(value))) for step, value in each] for key, each in points.items()}
