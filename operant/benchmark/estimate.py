"""What the cells of a suite would take: sessions, frames and, by a second of real training of each spec, time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from operant.benchmark.plan import PlannedCell
from operant.engines import engine_of, missing_for
from operant.errors import OperantError
from operant.launch.budget import share


@dataclass(frozen=True)
class CellCost:
    """A cell with its budget; `seconds` is the whole cell's time on this machine, None where it was not measured."""

    cell: str
    spec: str
    env: str
    seeds: int
    frames: int
    published: float | None
    seconds: float | None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        return asdict(self)


def estimate_cells(planned: Sequence[PlannedCell], measure: bool, jobs: int | None) -> Iterator[CellCost]:
    """Each cell as soon as its time is known; cells of one spec are taken to be equally quick."""
    rates: dict[str, float | str] = {}
    for each in planned:
        spec = each.loaded.spec
        if measure and each.cell.spec not in rates:
            rates[each.cell.spec] = _rate(each)
        rate = rates.get(each.cell.spec, "")
        at_once = jobs or share(10**6, spec.meta.threads, processes=spec.meta.processes).workers
        frames, seeds = spec.env.max_frame, spec.meta.max_session
        seconds = None if isinstance(rate, str) else frames * seeds / rate / at_once
        note = rate if isinstance(rate, str) else ""
        yield CellCost(each.cell.name, each.cell.spec, spec.env.name, seeds, frames, each.cell.published, seconds, note)


def _rate(planned: PlannedCell) -> float | str:
    """Frames per second of one session, or in words why that cannot be measured here."""
    spec = planned.loaded.spec
    missing = missing_for(spec)
    if missing is not None:
        return f"{missing.cause}; install: {missing.remedy}"
    try:
        engine = engine_of(spec)
        engine.validate(spec)
        return engine.estimate(spec).frames_per_second
    except OperantError as error:
        return error.cause.splitlines()[0]
