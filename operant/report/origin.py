"""What a run was made from: its spec, seeds, and what one attempt recorded of code, packages and machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from operant.run.layout import PROVENANCE_FOLDER, provenance_path, shown
from operant.run.run import Run, find_sessions


@dataclass(frozen=True)
class Origin:
    """Where results came from. A spec that was not run has a spec and seeds, and no provenance.

    `source` has the hash of every file of Operant, `patch` is the file of uncommitted changes, `parts` are the modules
    of the user's own that were used.
    """

    name: str
    spec: Mapping[str, Any]
    seeds: tuple[int, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    patch: Path | None = None
    parts: Sequence[Mapping[str, Any]] = ()
    threads: int | None = None

    @property
    def is_run(self) -> bool:
        """Whether it was run, so that code, packages and machine are known."""
        return bool(self.provenance)


def session_origin(run: Run, attempt: int = 1) -> Origin:
    """The origin of a session, as one of its attempts recorded it; the first began at frame 0.

    The seed is the recorded one, which the rows were made with, whatever run.json says today.
    """
    provenance = read_provenance(run.path, attempt)
    recorded = provenance.get("seeds", {}).get("session", run.seed)
    return Origin(
        name=shown(run.path),
        spec=run.spec,
        seeds=(int(recorded),),
        provenance=provenance,
        source=_read_json(_beside(run, provenance.get("source"))),
        patch=_beside(run, provenance.get("diff")),
        parts=run.document.get("parts", []),
        threads=run.threads,
    )


def trial_origin(path: Path) -> Origin:
    """The origin of a trial: that of its first session, with the seeds of all."""
    sessions = [session_origin(run) for run in find_sessions(path)]
    first = sessions[0]
    seeds = tuple(seed for each in sessions for seed in each.seeds)
    return replace(first, name=shown(path), seeds=seeds)


def read_provenance(session: Path, attempt: int) -> dict[str, Any]:
    """What an attempt recorded; empty where that is missing or damaged."""
    return _read_json(provenance_path(session, attempt))


def _beside(run: Run, name: Any) -> Path | None:
    """A file that a provenance names: always one of its own folder."""
    return run.path / PROVENANCE_FOLDER / Path(name).name if isinstance(name, str) else None


def _read_json(file: Path | None) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes()) if file else {}
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
