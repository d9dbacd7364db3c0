"""The stored comparisons with peers as tables for `RESULTS.md`."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.matched import CELLS
from benchmarks.returns_sb3 import RESULTS as RETURNS
from benchmarks.returns_sb3 import compared, read
from benchmarks.same_episodes import KINDS
from benchmarks.versus_peers import STEADY, ratio
from operant.report.stats import Estimate

FOLDER = Path(__file__).parent / "results"
ONE_THREAD, TWO_THREADS = "versus_sb3_arm.json", "versus_sb3_arm_two_threads.json"
PEERS = ("sb3", "tianshou")
RATED = [name for name, cell in CELLS.items() if {*PEERS} & {*cell.peers}]
ALL_PEERS = "versus_peers_x86.json"
NAMES = {
    "operant": "Operant, torch engine",
    "operant-jax": "Operant, jax engine",
    "operant-fused": "Operant, jax engine, environment compiled",
    "sb3": "SB3",
    "sbx": "SBX",
    "tianshou": "Tianshou",
    "cleanrl": "CleanRL, torch",
    "cleanrl-jax": "CleanRL, JAX",
    "rlox": "rlox",
    "rejax": "rejax",
    "purejaxrl": "PureJaxRL",
}
"""Libraries as tables call them."""


def returns() -> str:
    """Who learns better, cell by cell."""
    rows = read(RETURNS)
    lines = ["| cell | steps | return | Operant | SB3 | seeds | P(Operant > SB3) | verdict |", "|---" * 8 + "|"]
    for cell, kind in product(CELLS, KINDS):
        if found := compared(rows, cell, kind):
            lines.append(_row(f"`{cell}`", f"{CELLS[cell].learning_steps:,}", kind, *found))
    return "\n".join(lines) + "\n"


def rates(folder: Path = FOLDER) -> str:
    """Who is faster: by processor time with one thread, by the clock with two."""
    goes = [
        (json.loads((folder / file).read_text()), key)
        for file, key in ((ONE_THREAD, "steps_per_cpu_second"), (TWO_THREADS, "steps_per_second"))
    ]
    head = ["cell", "bar", "Operant, steps per CPU-s", "to SB3", "to Tianshou", "by the clock, two threads", "to SB3"]
    lines = [_row(*head, "to Tianshou"), "|---" * 8 + "|"]
    for cell in RATED:
        columns = [column for go, key in goes for column in _rate(go["summary"].get(cell, {}), key)]
        bar = CELLS[cell].bar
        lines.append(_row(f"`{cell}`", "" if bar is None else f"{bar:g}", *columns))
    return "\n".join(lines) + "\n"


def versus(folder: Path = FOLDER) -> str:
    """Every library of the widest comparison: its steady rate, Operant's as multiples of it, and its returns."""
    go = json.loads((folder / ALL_PEERS).read_text())
    head = ["cell", "library", "steady steps per CPU-s", "torch engine is", "jax engine is", "compiled is"]
    lines = [_row(*head, "greedy return", "sampled return"), "|---" * 8 + "|"]
    for cell, by_library in go["summary"].items():
        for library, found in by_library.items():
            ratios = [
                "" if library == ours else ratio(by_library, ours, library)
                for ours in ("operant", "operant-jax", "operant-fused")
            ]
            scores = [f"{Estimate(**found[kind]).point:,.1f}" for kind in KINDS]
            lines.append(_row(f"`{cell}`", NAMES[library], f"{found[STEADY]:,.0f}", *ratios, *scores))
    left_out = [f"{name} ({reason})" for name, reason in go["left_out"].items()]
    return "\n".join(lines) + "\n" + (f"\nLeft out: {'; '.join(left_out)}.\n" if left_out else "")


def _rate(found: dict[str, Any], key: str) -> list[str]:
    """Operant's rate, and its ratio to each peer that was measured beside it."""
    if "operant" not in found:
        return ["not run", "", ""]
    ours = found["operant"][key]
    return [f"{ours:,.0f}", *(f"**{ours / found[peer][key]:.2f}**" if peer in found else "" for peer in PEERS)]


def _row(*columns: str) -> str:
    return f"| {' | '.join(columns)} |"
