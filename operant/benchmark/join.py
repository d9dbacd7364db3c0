"""Results of the same settings on other seeds, joined into one: seeds may come in later, or from another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.benchmark.outcome import SCORES, Outcome, scored
from operant.benchmark.plan import PlannedCell
from operant.errors import UsageError
from operant.run.layout import shown

PART = ("seeds", "version", "commit", "machine", "device", "run")  # how each part of a joined result came about


def require_joinable(stored: Outcome, planned: PlannedCell, folder: Path) -> None:
    """`UsageError` unless the stored result is of the same settings and of other seeds than those planned."""
    name = planned.cell.name
    place = shown(folder / f"{name}.json")
    elsewhere = "without --add, or with another --out"
    if stored.get("settings_sha256") is None or not stored.get("seeds"):
        raise UsageError(
            "this result does not say of which settings and seeds it is, so none can join it",
            place=place,
            remedy=elsewhere,
        )
    if stored["settings_sha256"] != planned.settings_sha256:
        raise UsageError(
            f"this result is of other settings than {name} has now; seeds join those of the same settings",
            place=place,
            remedy=elsewhere,
        )
    if both := sorted(set(stored["seeds"]) & set(planned.seeds)):
        first = max(stored["seeds"]) + 1
        raise UsageError(
            f"this result has seed {both[0]} already", place=place, remedy=f"-s meta.seed={first}    (seeds from there)"
        )


def joined(stored: Outcome, added: Outcome) -> Outcome:
    """The result over the seeds of both, in the order of the seeds; `parts` says how each came about."""
    seeds = [*stored["seeds"], *added["seeds"]]
    order = sorted(range(len(seeds)), key=seeds.__getitem__)

    def arranged(values: list[Any]) -> list[Any]:
        return [values[i] for i in order]

    together: Outcome = {**added, "seeds": arranged(seeds), "seconds": arranged(stored["seconds"] + added["seconds"])}
    for kind in SCORES:
        parts = (stored[kind], added[kind])
        together[kind] = scored(arranged([each for part in parts for each in part["each"]])) if all(parts) else None
    before = stored.get("parts") or [_part(stored)]
    settings = [each for each in added["set"] if not each.startswith("meta.seed=")]
    return {**together, "set": settings, "parts": [*before, _part(added)]}


def _part(result: Outcome) -> dict[str, Any]:
    return {key: result.get(key) for key in PART}
