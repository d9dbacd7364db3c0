"""Where the real datasets lie, if they are here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[5] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> str:
    """The folder of real datasets; the test is skipped where there is none."""
    folder = Path(os.environ.get("OPERANT_DATA") or BESIDE)
    if not (folder / "gsm8k").is_dir():
        pytest.skip("no datasets: set OPERANT_DATA")
    return str(folder)
