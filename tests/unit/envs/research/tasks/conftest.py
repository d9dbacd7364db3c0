"""Where the real datasets lie, if they are here, and that a machine without a sandbox skips what needs one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.envs.sandbox import bubblewrap

BESIDE = Path(__file__).parents[6] / "shared" / "data"
DATA_TASKS = ("titanic", "diamonds", "fashion_mnist")
FOLDERS = ("titanic", "tabular", "fashion-mnist")


@pytest.fixture
def sandboxes() -> None:
    """Skip where code cannot be run safely."""
    if trouble := bubblewrap.trouble():
        pytest.skip(f"no sandbox: {trouble}")


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of real datasets; the test is skipped where there is none."""
    folder = Path(os.environ.get("OPERANT_DATA") or BESIDE)
    if not all((folder / name).is_dir() for name in FOLDERS):
        pytest.skip("no datasets: set OPERANT_DATA")
    monkeypatch.setenv("OPERANT_DATA", str(folder))
    return str(folder)
