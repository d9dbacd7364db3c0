"""Writes stored results into `benchmarks/RESULTS.md`: the suites beside published figures, Operant beside its peers.

python -m benchmarks.tables

The suites' results are made by `operant bench SUITE --out benchmarks/results/suites`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import peers
from operant.benchmark.load import load_suite
from operant.benchmark.table import BEGIN, END, replaced, section

DOCUMENT = Path(__file__).parent / "RESULTS.md"
RESULTS = Path(__file__).parent / "results" / "suites"
COMMAND = "python -m benchmarks.tables"
SUITES = ("classic", "box2d", "mujoco", "atari")


def suites(folder: Path = RESULTS) -> str:
    """The tables of all suites."""
    return "\n".join(section(load_suite(name), folder) for name in SUITES)


def main() -> None:
    """Replace what stands between the marks in the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in (("suites", suites()), ("returns", peers.returns()), ("rates", peers.rates())):
        text = replaced(text, BEGIN.format(name, COMMAND), END.format(name), part)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
