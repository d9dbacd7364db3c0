"""The process that stores a run while it trains, killed and told to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from operant.launch import sync_process
from operant.launch.sync_process import start_sync
from operant.run.run import Run
from operant.store.status import read_status
from tests.processes import lives, wait_until


def test_it_is_started_again_and_ends_when_all_is_there(
    make_trial: Callable[..., list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_process, "RESTART_SECONDS", 0.0)
    experiment = make_trial()[0].path.parents[1]
    store = tmp_path / "store"
    process = start_sync(experiment, {"sync": str(store)})
    assert process is not None

    def status() -> dict:
        return read_status(experiment) or {}

    assert wait_until(lambda: status().get("state") == "watching", 60)
    first = status()["pid"]
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: not lives(first))
    process.tend()
    process.finish(leave=lambda: False)
    assert status()["state"] == "done"
    assert status()["pid"] != first
    assert len(list(store.rglob("manifest.json"))) == 4


def test_a_run_without_the_setting_has_none(tmp_path: Path) -> None:
    assert start_sync(tmp_path, {}) is None
    assert start_sync(tmp_path, {"sync": None}) is None
