"""Operant's torch and jax engines, Stable-Baselines3, SBX and Tianshou at matched settings, alternating in one go.

    scripts/uv run --group bench python -m benchmarks.versus_sb3
    scripts/uv run --group bench python -m benchmarks.versus_sb3 --cells sac-pendulum --seeds 2

Prints steps per CPU-second and returns of each, and the ratio to the fastest peer; writes the
numbers to --out. A ratio of the same minute on the same machine is worth more than any absolute
rate. A peer that is not installed is left out. Needs no network: packages may come on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.matched import CELLS
from operant.report.stats import Estimate, mean_interval

RESULTS = Path(__file__).parent / "results" / "versus_sb3.json"
PACKAGES = {"sb3": "stable_baselines3", "sbx": "sbx", "tianshou": "tianshou"}


def libraries(cell: str) -> list[str]:
    """Operant's engines and the peers of a cell that are installed here."""
    engines = ["operant", "operant-jax"] if find_spec("jax") else ["operant"]
    return [*engines, *(peer for peer in CELLS[cell].peers if find_spec(PACKAGES[peer]))]


def measure(library: str, cell: str, seed: int, threads: int, steps: int | None = None) -> dict[str, Any]:
    """One training run in a fresh process, as long as the cell says unless `steps` are given."""
    argv = [sys.executable, "-m", "benchmarks.one_run", library, cell, "--seed", str(seed)]
    argv += [] if steps is None else ["--steps", str(steps)]
    environment = {**os.environ, "BENCHMARK_THREADS": str(threads)}
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Median rates, and mean returns with their intervals over seeds, of one library's runs of one cell."""
    return {
        "steps_per_cpu_second": statistics.median(row["steps"] / row["cpu_seconds"] for row in rows),
        "steps_per_second": statistics.median(row["steps"] / row["seconds"] for row in rows),
        "greedy": mean_interval([row["greedy"] for row in rows]).as_dict(),
        "sampled": mean_interval([row["sampled"] for row in rows]).as_dict(),
    }


def summarise_all(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By cell and library, in the order in which they were run."""
    pairs = dict.fromkeys((row["cell"], row["library"]) for row in rows)
    summary: dict[str, dict[str, Any]] = {cell: {} for cell, _ in pairs}
    for cell, library in pairs:
        mine = [row for row in rows if (row["cell"], row["library"]) == (cell, library)]
        summary[cell][library] = summarise(mine)
    return summary


def table(summary: dict[str, dict[str, Any]]) -> str:
    """The result in words; the ratio is that of Operant's torch engine to each, in CPU time and by the clock."""
    lines = [
        f"{'cell':19}{'library':12}{'steps/CPU-s':>12}{'ratio':>7}{'steps/s':>9}{'ratio':>7}{'bar':>5}"
        f"{'greedy return':>34}{'sampled return':>34}"
    ]
    for cell, by_library in summary.items():
        ours = by_library["operant"]
        for library, found in by_library.items():
            of_cpu, by_clock = (ours[key] / found[key] for key in ("steps_per_cpu_second", "steps_per_second"))
            bar = f"{CELLS[cell].bar or '':>5}" if library == "operant" else f"{'':5}"
            lines.append(
                f"{cell:19}{library:12}{found['steps_per_cpu_second']:12,.0f}{of_cpu:7.2f}"
                f"{found['steps_per_second']:9,.0f}{by_clock:7.2f}{bar}"
                f"{_interval(found['greedy']):>34}{_interval(found['sampled']):>34}"
            )
    return "\n".join(lines)


def _interval(estimate: dict[str, Any]) -> str:
    return Estimate(**estimate).text(1)


def machine(threads: int) -> dict[str, Any]:
    """What the numbers were taken with."""
    versions = {}
    for package in ("torch", "jax", "gymnasium", "stable-baselines3", "sbx-rl", "tianshou"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "threads": threads,
        "versions": versions,
    }


def main() -> None:
    """Alternate the libraries over the seeds, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the numbers go")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(1, asked.seeds + 1):
        for cell in asked.cells:
            for library in libraries(cell):
                rows.append(measure(library, cell, seed, asked.threads))
                print(json.dumps(rows[-1]), flush=True)
    summary = summarise_all(rows)
    print(table(summary))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(asked.threads), "summary": summary, "runs": rows}
    asked.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
