"""A checkpoint of another learner is refused by the name of what it lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from operant.engines.torch.advantages import ReturnScale
from operant.engines.torch.buffers.nstep import NStep
from operant.engines.torch.checkpoint import Snapshot
from operant.engines.torch.tracker import Tracker
from operant.errors import RunError


def snapshot(returns: ReturnScale, steps: int, stream: str = "act") -> Snapshot:
    lookahead = NStep(2, steps, 0.9, (3,), np.zeros((), np.int64))
    return Snapshot({}, {"returns": returns, "lookahead": lookahead}, Tracker(), {stream: np.random.default_rng(0)})


def test_a_part_that_was_not_saved_is_named(tmp_path: Path) -> None:
    snapshot(ReturnScale(), 2).write(tmp_path)
    with pytest.raises(RunError, match="returns/mean is needed, but was not saved"):
        snapshot(ReturnScale(standardize=True), 2).read(tmp_path)
    with pytest.raises(RunError, match="returns/spread is needed, but was not saved"):
        snapshot(ReturnScale(spread=True), 2).read(tmp_path)
    with pytest.raises(RunError, match="streams/shuffle is needed, but was not saved"):
        snapshot(ReturnScale(), 2, "shuffle").read(tmp_path)


def test_a_part_of_another_shape_is_named(tmp_path: Path) -> None:
    snapshot(ReturnScale(), 2).write(tmp_path)
    with pytest.raises(RunError, match="the checkpoint does not fit: lookahead cannot be taken back"):
        snapshot(ReturnScale(), 3).read(tmp_path)
