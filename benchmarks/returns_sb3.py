"""Do Operant and Stable-Baselines3 learn equally well at matched settings? Many seeds, on many cores.

    scripts/uv run --group bench python -m benchmarks.returns_sb3 --seeds 16 --jobs 16

Trains every cell of `matched.py` as long as it needs to learn something, and says of the returns, greedy
and sampled, on the same episodes, whether one library is better. Runs side by side, so it measures no
speed: that is `versus_sb3.py`. Each run is appended to --out when it ends; stopped and started again,
it goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.matched import CELLS
from benchmarks.versus_sb3 import measure
from operant.report.stats import mean_interval, probability_of_improvement

RESULTS = Path(__file__).parent / "results" / "returns_sb3.jsonl"
LIBRARIES = ("operant", "sb3")
VERDICTS = {"A better": "Operant better", "B better": "SB3 better"}
Key = tuple[str, str, int]


def key(row: dict[str, Any]) -> Key:
    """Which run a row is of."""
    return row["library"], row["cell"], row["seed"]


def read(path: Path) -> list[dict[str, Any]]:
    """The runs that have ended so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def missing(cells: list[str], seeds: int, ended: list[dict[str, Any]]) -> list[Key]:
    """The runs still to do: seed by seed, so that whatever is there when time is up can be compared."""
    wanted = [(library, cell, seed) for seed in range(1, seeds + 1) for cell in cells for library in LIBRARIES]
    done = {key(row) for row in ended}
    return [run for run in wanted if run not in done]


def verdict(rows: list[dict[str, Any]], cell: str, kind: str) -> str:
    """One line of the report: both means with their intervals, and what may be said about them."""
    ours, theirs = ([row[kind] for row in rows if key(row)[:2] == (library, cell)] for library in LIBRARIES)
    if not ours or not theirs:
        return f"{cell:19}{kind:9}not run"
    compared = probability_of_improvement(ours, theirs)
    return (
        f"{cell:19}{kind:9}{mean_interval(ours).text(1):>30}{mean_interval(theirs).text(1):>30}"
        f"{f'{len(ours)}, {len(theirs)}':>8}{compared.probability.text(2):>20}  "
        f"{VERDICTS.get(compared.verdict, compared.verdict)}"
    )


def report(rows: list[dict[str, Any]], cells: list[str]) -> str:
    """The whole table."""
    head = f"{'cell':19}{'return':9}{'Operant':>30}{'SB3':>30}{'seeds':>8}{'P(Operant > SB3)':>20}  verdict"
    return "\n".join([head, *(verdict(rows, cell, kind) for cell in cells for kind in ("greedy", "sampled"))])


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at a time, one thread each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the runs are written")
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    runs = missing(asked.cells, asked.seeds, read(asked.out))
    with ThreadPoolExecutor(asked.jobs) as pool:
        started = [
            pool.submit(measure, library, cell, seed, threads=1, steps=CELLS[cell].learning_steps)
            for library, cell, seed in runs
        ]
        for ended in as_completed(started):
            with asked.out.open("a") as out:
                out.write(json.dumps(ended.result()) + "\n")
    print(report(read(asked.out), asked.cells))


if __name__ == "__main__":
    main()
