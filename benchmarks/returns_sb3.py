"""Do Operant and Stable-Baselines3 learn equally well at matched settings? Many seeds, on many cores.

    scripts/uv run --group bench python -m benchmarks.returns_sb3 --seeds 16 --jobs 16

Trains every cell of `matched.py` as long as it needs to learn something, and says of the returns, greedy
and sampled, on the same episodes, whether one library is better. Runs side by side, so it measures no
speed: that is `versus_peers.py`. Each run is appended to --out when it ends; stopped and started again,
it goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.matched import CELLS
from benchmarks.same_episodes import KINDS
from benchmarks.versus_peers import measure
from operant.report.improvement import probability_of_improvement
from operant.report.stats import mean_interval

RESULTS = Path(__file__).parent / "results" / "returns_sb3.jsonl"
LIBRARIES = ("operant", "sb3")
SHARED = [name for name, cell in CELLS.items() if "sb3" in cell.peers]
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


def compared(rows: list[dict[str, Any]], cell: str, kind: str) -> list[str]:
    """Both means with intervals, the numbers of seeds, P(Operant > SB3) and the verdict; nothing without runs."""
    ours, theirs = ([row[kind] for row in rows if key(row)[:2] == (library, cell)] for library in LIBRARIES)
    if not ours or not theirs:
        return []
    found = probability_of_improvement(ours, theirs)
    means = [mean_interval(returns).text(1) for returns in (ours, theirs)]
    words = VERDICTS.get(found.verdict, found.verdict)
    return [*means, f"{len(ours)}, {len(theirs)}", found.probability.text(2), words]


def report(rows: list[dict[str, Any]], cells: list[str]) -> str:
    """The whole table."""
    lines = [_line("cell", "return", ["Operant", "SB3", "seeds", "P(Operant > SB3)", "verdict"])]
    for cell, kind in product(cells, KINDS):
        found = compared(rows, cell, kind)
        lines.append(_line(cell, kind, found) if found else f"{cell:19}{kind:9}not run")
    return "\n".join(lines)


def _line(cell: str, kind: str, columns: list[str]) -> str:
    ours, theirs, seeds, probability, words = columns
    return f"{cell:19}{kind:9}{ours:>26}{theirs:>26}{seeds:>8}{probability:>20}  {words}"


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=SHARED, choices=SHARED)
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
