from __future__ import annotations

from pathlib import Path

import pytest

from operant.errors import RunError
from operant.run.restoring import Saved, restoring


def test_what_a_checkpoint_lacks_is_named_with_its_file() -> None:
    saved = Saved({"mean": 1}, Path("runs/a/learner.safetensors"), "returns/")
    assert saved["mean"] == 1
    assert saved.get("spread") is None
    with pytest.raises(
        RunError, match=r"the checkpoint does not fit: returns/spread is needed, but was not saved"
    ) as told:
        saved["spread"]
    assert str(told.value.place).endswith("learner.safetensors")
    assert told.value.remedy is not None


def test_what_cannot_be_taken_back_is_told_without_a_bare_error() -> None:
    with (
        pytest.raises(RunError, match=r"replay cannot be taken back \(could not broadcast\)"),
        restoring(Path("a"), "replay"),
    ):
        raise ValueError("could not broadcast")
    with pytest.raises(RunError, match="already told"), restoring(Path("a"), "replay"):
        raise RunError("already told")
