"""Kills without number: whatever is cut short, and when, the resumed run equals the one that never was."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SWEEP = Path(__file__).parent / "crash_sweep.py"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A place in memory where there is one: a kill does not care whether the disk is real, and the sweep is faster."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as inside:
        yield Path(inside)


@pytest.mark.slow
def test_a_kill_at_any_file_operation_changes_nothing(folder: Path, start):
    out, err = start(SWEEP, "operations", folder).communicate(timeout=200)
    report = json.loads(out) if out else {"wrong": err}
    assert report["wrong"] == []
    assert report["kills"] > 100
    assert report["rows"] > 0


def test_twenty_kills_at_random_moments_change_nothing(tmp_path: Path, start):
    out, err = start(SWEEP, "moments", tmp_path, 20).communicate(timeout=200)
    report = json.loads(out) if out else {"wrong": err}
    assert report["wrong"] == []
    assert report["kills"] == 20
