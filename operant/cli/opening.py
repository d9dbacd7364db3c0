"""Opening the run that is named, with a warning for everything of it that is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from operant.cli.output import aside

if TYPE_CHECKING:
    from operant.run.inventory import Fault


def open_place(run: str, root: Path) -> Path:
    """The directory of the run, whose sessions can be opened; what else is missing goes to standard error."""
    from operant.run.run import find_sessions, resolve

    place = resolve(run, root).resolve()
    find_sessions(place)
    warn(place, aside)
    return place


def warn(place: Path, show: Callable[[str], None]) -> list[Fault]:
    """Name each fault of a run, and each loss that an earlier resume went on with; returns the faults."""
    from operant.run.inventory import faults, past_losses
    from operant.run.layout import session_paths, trial_paths

    found = faults(place)
    for fault in found:
        show(f"warning: {fault}")
    for session in (one for trial in trial_paths(place) or [place] for one in session_paths(trial) or [trial]):
        for loss in past_losses(session):
            show(f"warning: {loss}; an earlier resume went on without them")
    return found
