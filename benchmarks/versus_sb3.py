"""Operant and Stable-Baselines3 at matched settings, one thread, alternating in one go.

    scripts/uv run --group bench python -m benchmarks.versus_sb3

Prints steps per CPU-second and returns of both, and their ratio; writes the numbers to --out.
A ratio of the same minute on the same machine is worth more than any absolute rate.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from operant.report.stats import Estimate, mean_interval

RESULTS = Path(__file__).parent / "results" / "versus_sb3.json"
BARS = {"ppo": 2.0, "dqn": 1.5}
LIBRARIES = ("operant", "sb3")


def measure(library: str, algorithm: str, seed: int) -> dict[str, Any]:
    """One training run in a fresh process."""
    argv = [sys.executable, "-m", "benchmarks.one_run", library, algorithm, "--seed", str(seed)]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def summarise(rows: list[dict[str, Any]], library: str, algorithm: str) -> dict[str, Any]:
    """Median rate, and mean returns with their intervals over seeds, of one library's runs."""
    mine = [row for row in rows if (row["library"], row["algorithm"]) == (library, algorithm)]
    return {
        "steps_per_cpu_second": statistics.median(row["steps"] / row["cpu_seconds"] for row in mine),
        "greedy": mean_interval([row["greedy"] for row in mine]).as_dict(),
        "sampled": mean_interval([row["sampled"] for row in mine]).as_dict(),
    }


def table(summary: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The result in words."""
    lines = [
        f"{'':6}{'library':10}{'steps/CPU-s':>12}{'ratio':>8}{'bar':>6}{'greedy return':>24}{'sampled return':>24}"
    ]
    for algorithm, by_library in summary.items():
        base = by_library["sb3"]["steps_per_cpu_second"]
        for library, found in by_library.items():
            ratio = found["steps_per_cpu_second"] / base
            bar = f"{BARS[algorithm]:.1f}" if library == "operant" else ""
            lines.append(
                f"{algorithm:6}{library:10}{found['steps_per_cpu_second']:12,.0f}{ratio:8.2f}{bar:>6}"
                f"{_interval(found['greedy']):>24}{_interval(found['sampled']):>24}"
            )
    return "\n".join(lines)


def _interval(estimate: dict[str, Any]) -> str:
    return Estimate(**estimate).text(1)


def main() -> None:
    """Alternate the libraries over the seeds, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", default=["ppo", "dqn"], choices=list(BARS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the numbers go")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for algorithm in asked.algorithms:
        for seed in range(1, asked.seeds + 1):
            for library in LIBRARIES:
                rows.append(measure(library, algorithm, seed))
                print(json.dumps(rows[-1]), flush=True)
    summary = {a: {name: summarise(rows, name, a) for name in LIBRARIES} for a in asked.algorithms}
    print(table(summary))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": platform.machine(), "python": platform.python_version()}
    asked.out.write_text(json.dumps({"machine": machine, "summary": summary, "runs": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
