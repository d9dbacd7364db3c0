"""A resolved spec and run directories, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.launch.prepare import create_trial
from operant.run.run import Run


@pytest.fixture
def spec() -> dict[str, Any]:
    """The parts of a resolved spec that the launch room reads."""
    return {
        "name": "toy",
        "env": {"name": "Toy-v0", "num_envs": 1, "max_frame": 100},
        "agent": {"algorithm": {"name": "ppo", "gamma": 0.99}, "net": {"hidden": [8]}, "memory": None},
        "meta": {
            "max_session": 3,
            "seed": 7,
            "threads": None,
            "log_frequency": 10,
            "eval_frequency": 10,
            "save_frequency": 10,
            "keep_checkpoints": 2,
        },
    }


@pytest.fixture
def make_trial(tmp_path: Path, spec: dict[str, Any]) -> Callable[..., list[Run]]:
    """Creates a trial under a temporary root."""

    def make(**meta: Any) -> list[Run]:
        changed = {**spec, "meta": {**spec["meta"], **meta}}
        return create_trial(
            changed, root=tmp_path / "runs", out=None, source_text="{}", source_suffix=".json", command=["operant"]
        )

    return make
