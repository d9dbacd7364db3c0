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
from operant.benchmark.outcome import Outcome, read_outcome
from operant.benchmark.table import (
    BEGIN,
    END,
    figure,
    full,
    heading,
    interval,
    line,
    met,
    replaced,
    section,
    seeds,
    table,
)

DOCUMENT = Path(__file__).parent / "RESULTS.md"
RESULTS = Path(__file__).parent / "results" / "suites"
COMMAND = "python -m benchmarks.tables"
SUITES = ("classic", "box2d", "mujoco", "atari")
GRADERS = Path(__file__).parents[1] / "docs" / "howto" / "graders.md"
PAGES = Path(__file__).parents[1] / "docs" / "algorithms"
README = Path(__file__).parents[1] / "README.md"
README_CELLS = ("ppo_cartpole", "ddqn_per_lunar", "sac_pendulum", "ppo_halfcheetah", "ppo_atari_lam85_pong")
"""The cells that README.md shows."""
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


def readme_table(folder: Path = RESULTS) -> str:
    """The table of README.md, and how many published figures were met."""
    cells = [cell.name for name in SUITES for cell in load_suite(name).cells]
    ran = [outcome for name in cells if (outcome := read_outcome(folder, name)) is not None]
    shown = [outcome for name in README_CELLS for outcome in ran if outcome["cell"] == name]
    verdicts = [met(outcome) for outcome in ran if full(outcome)]
    columns = ("environment", "spec", "frames", "seeds", "final score (95 % interval)", "in training", "SLM-Lab")
    yes, no = verdicts.count("yes"), verdicts.count("no")
    reached = (
        f"Of the {len(cells)} cells of SLM-Lab's published tables {len(verdicts)} were trained at the whole budget: "
        f"{yes} reach their figure\nby final score and in training, {len(verdicts) - yes - no} by one of the two, "
        f"{no} by neither. [All of them](benchmarks/RESULTS.md)\n"
    )
    return "".join([heading(columns), *map(readme_row, shown), "\n", reached])


def readme_row(one: Outcome) -> str:
    """One line of README.md's table."""
    scores = interval(one["greedy"]), interval(one["total_reward_ma"])
    return line([one["env"], f"`{one['cell']}`", f"{one['frames']:,}", seeds(one), *scores, figure(one["published"])])


def main() -> None:
    """Replace what stands between the marks in the documents."""
    begin, end = BEGIN.format("results", COMMAND), END.format("results")
    for file, part in {
        README: readme_table(),
        **{PAGES / f"{page}.md": of_algorithm(page) for page in ALGORITHMS},
    }.items():
        file.write_text(replaced(file.read_text(encoding="utf-8"), begin, end, part), encoding="utf-8")
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
