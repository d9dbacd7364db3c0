"""The tables of peers say what was measured, and what was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers, tables
from benchmarks.matched import CELLS
from operant.benchmark.table import BEGIN, END, replaced
from operant.errors import UsageError


def rates(steps: float) -> dict[str, Any]:
    return {"steps_per_cpu_second": steps, "steps_per_second": 2 * steps}


def test_rates_are_ratios_to_the_peers_that_were_measured(tmp_path: Path):
    one = {"summary": {"ppo-cartpole": {"operant": rates(6000.0), "sb3": rates(2000.0), "tianshou": rates(1000.0)}}}
    two = {"summary": {"ppo-cartpole": {"operant": rates(5000.0), "sb3": rates(2500.0)}}}
    (tmp_path / peers.ONE_THREAD).write_text(json.dumps(one))
    (tmp_path / peers.TWO_THREADS).write_text(json.dumps(two))
    _, _, *lines = peers.rates(tmp_path).splitlines()
    assert lines[0] == "| `ppo-cartpole` | 2 | 6,000 | **3.00** | **6.00** | 10,000 | **2.00** |  |"
    assert len(lines) == len(peers.RATED) < len(CELLS)
    assert all(line.count("not run") == 2 for line in lines[1:])


def test_every_cell_of_stored_returns_is_shown_with_its_verdict():
    shown = peers.returns()
    cells = {json.loads(line)["cell"] for line in peers.RETURNS.read_text().splitlines()}
    assert all(shown.count(f"| `{cell}` |") == 2 for cell in cells)


def test_only_what_stands_between_the_marks_is_replaced():
    begin, end = BEGIN.format("rates", tables.COMMAND), END.format("rates")
    assert replaced(f"a\n{begin}\nold\n{end}\nz", begin, end, "new") == f"a\n{begin}\n\nnew\n{end}\nz"
    with pytest.raises(UsageError, match="has no part between"):
        replaced("a text without marks", begin, end, "new")
