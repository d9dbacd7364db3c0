"""A handful of random kills; benchmarks/random_kills.py makes hundreds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", ["single turn, staleness 2", "multi-turn, staleness 2"])
def test_the_journal_balances_after_every_kill(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "kills.json"
    command = [sys.executable, "-m", "benchmarks.random_kills", "--kills", "4", "--only", kind, "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())
    assert found["balanced"] == found["kills"] >= 4
    assert found["cases"][kind]["repeated_turns"] == 0
