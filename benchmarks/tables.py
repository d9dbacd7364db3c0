"""Writes stored results into `benchmarks/RESULTS.md`: the suites beside published figures, Operant beside its peers;
and those of each algorithm into its page of the docs, and of verifiers into theirs.

python -m benchmarks.tables

The suites' results are made by `operant bench SUITE --out benchmarks/results/suites`.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import graders, mixture, peers, verifier_pool
from operant.benchmark.load import load_suite
from operant.benchmark.outcome import read_outcome
from operant.benchmark.table import BEGIN, END, replaced, section, table

DOCUMENT = Path(__file__).parent / "RESULTS.md"
RESULTS = Path(__file__).parent / "results" / "suites"
COMMAND = "python -m benchmarks.tables"
SUITES = ("classic", "box2d", "mujoco", "atari")
GRADERS = Path(__file__).parents[1] / "docs" / "howto" / "graders.md"
PAGES = Path(__file__).parents[1] / "docs" / "algorithms"
ALGORITHMS = {
    "a2c": ("A2C",),
    "crossq": ("CrossQ",),
    "dqn": ("DQN", "DDQN+PER"),
    "ppo": ("PPO",),
    "reinforce": ("REINFORCE",),
    "sac": ("SAC",),
    "sarsa": ("SARSA",),
}
"""Page by page, the columns of the published table."""


def suites(folder: Path = RESULTS) -> str:
    """The tables of all suites."""
    return "\n".join(section(load_suite(name), folder) for name in SUITES)


def of_algorithm(page: str, folder: Path = RESULTS) -> str:
    """What was measured of the algorithm of a page."""
    cells = [cell for name in SUITES for cell in load_suite(name).cells if cell.column in ALGORITHMS[page]]
    return table([cell for cell in cells if read_outcome(folder, cell.name) is not None], folder)


def main() -> None:
    """Replace what stands between the marks in the documents."""
    for page in ALGORITHMS:
        file = PAGES / f"{page}.md"
        begin, end = BEGIN.format("results", COMMAND), END.format("results")
        file.write_text(replaced(file.read_text(encoding="utf-8"), begin, end, of_algorithm(page)), encoding="utf-8")
    text = GRADERS.read_text(encoding="utf-8")
    stored = json.loads(verifier_pool.RESULT.read_text(encoding="utf-8"))
    for name, part in (("graders", graders.table()), ("verifier_pool", verifier_pool.table(stored))):
        text = replaced(text, BEGIN.format(name, COMMAND), END.format(name), part)
    GRADERS.write_text(text, encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    parts = {
        "suites": suites(),
        "returns": peers.returns(),
        "rates": peers.rates(),
        "versus": peers.versus(),
        "mixture": mixture.mixture(),
        "staleness": mixture.staleness(),
    }
    for name, part in parts.items():
        text = replaced(text, BEGIN.format(name, COMMAND), END.format(name), part)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
