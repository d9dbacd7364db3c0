"""The settings of a suite: which specs are trained at which budget, and what figure each should reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from operant.errors import UsageError
from operant.spec.fields import Closed
from operant.spec.load import READERS
from operant.spec.reading.diagnostics import listed, nearest

Measure = Literal["score", "total_reward_ma"]
NAME = r"^[A-Za-z0-9][\w.+-]*$"
NAME_WORDS = "Letters, digits and _ . + -"


class CellSpec(Closed):
    """One row of a suite as its file has it."""

    name: str | None = Field(
        default=None,
        pattern=NAME,
        max_length=100,
        description=f"What --cells and the results call it; by default the spec's name. {NAME_WORDS}.",
    )
    spec: str = Field(min_length=1, description="A built-in spec, a file, or FILE:NAME; files beside the suite first.")
    set: dict[str, Any] = Field(default_factory=dict, description="Settings by path, as -s sets them.")
    frames: int | None = Field(default=None, ge=1, le=10**12, description="Budget per seed; by default the spec's own.")
    column: str = Field(default="", max_length=100, description="The algorithm's name in the table.")
    published: float | None = Field(default=None, description="The figure to reach.")
    measure: Measure | None = Field(default=None, description="What the figure measures; by default the suite's.")
    source: str | None = Field(default=None, max_length=500, description="Who published it; by default the suite's.")


class SuiteSpec(Closed):
    """A suite as its file has it."""

    name: str = Field(pattern=NAME, max_length=60, description=f"By default the file's name. {NAME_WORDS}.")
    title: str = Field(default="", max_length=100, description="Heading of its table; by default the name.")
    description: str = Field(default="", max_length=500, description="What it is for, in one line.")
    seeds: int = Field(default=4, ge=1, le=1000, description="Seeds of every cell.")
    measure: Measure = Field(default="score", description="What published figures measure.")
    source: str = Field(default="", max_length=500, description="Where published figures are from.")
    window: int | None = Field(
        default=None,
        ge=1,
        description="Frames at the end of training that total_reward_ma averages over; by default 100 x log_frequency.",
    )
    cells: tuple[CellSpec, ...] = Field(description="What is trained: a list of cells, each with a spec.")


@dataclass(frozen=True)
class Cell:
    """One spec at one budget, with everything that its suite says for it. `place` is where its file has it."""

    name: str
    spec: str
    settings: dict[str, Any]
    frames: int | None
    column: str
    published: float | None
    measure: Measure
    source: str
    window: int | None
    place: str


@dataclass(frozen=True)
class Suite:
    """Cells with names of their own, in the order of the file."""

    name: str
    title: str
    description: str
    seeds: int
    cells: tuple[Cell, ...]

    def select(self, patterns: Sequence[str]) -> list[Cell]:
        """The cells whose names match any of the patterns, all without one; `UsageError` if a pattern matches none."""
        names = [cell.name for cell in self.cells]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                near = nearest(pattern, names)
                hint = f"did you mean {near}?" if near else f"it has {listed(names)}"
                raise UsageError(f"no cell of {self.name} matches {pattern}; {hint}", remedy=self.list_command)
        return [cell for cell in self.cells if not patterns or any(fnmatchcase(cell.name, each) for each in patterns)]

    @property
    def list_command(self) -> str:
        """The command that shows the cells."""
        return f"operant bench {self.name} --list"


def repeated_names(spec: SuiteSpec) -> Iterator[tuple[int, str]]:
    """Index and name of every cell whose name an earlier one has."""
    seen: Counter[str] = Counter()
    for index, cell in enumerate(spec.cells):
        name = cell_name(cell)
        seen[name] += 1
        if seen[name] > 1:
            yield index, name


def cell_name(cell: CellSpec) -> str:
    """The name it has, or that of its spec: of a file its stem, of FILE:NAME the name."""
    if cell.name is not None:
        return cell.name
    file, _, inner = cell.spec.rpartition(":")
    if file:
        return inner
    path = Path(cell.spec)
    return path.stem if path.suffix in READERS else cell.spec
