"""From the cells of a suite to run directories: checked before anything is written, found again after a stop.

A folder of results remembers in `.runs.json` which runs each of its cells has. The same command goes on with its runs;
with other settings, another budget or other seeds, and in another folder of results, a cell is trained anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from operant.api.runs import Trial
from operant.api.specs import loaded_spec, validate
from operant.api.training import runs_to_resume
from operant.benchmark.load import in_cell
from operant.benchmark.outcome import Outcome, read_outcome
from operant.benchmark.suite import Cell, Suite
from operant.engines import require_packages
from operant.errors import OperantError
from operant.launch.prepare import create_trial
from operant.run.disk import write_json
from operant.run.layout import stamp
from operant.run.provenance import running_command
from operant.run.run import Run, find_sessions
from operant.spec.load import Loaded, load
from operant.store.backend import Report

STATE_FILE = ".runs.json"
BUDGET = "env.max_frame"


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its whole spec; `budget` is the suite's, which `--frames` may have changed in the spec.

    `overrides` are the settings that the command line adds to the cell's own.
    """

    cell: Cell
    loaded: Loaded
    budget: int
    overrides: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names the spec with all its settings, its budget and its seeds."""
        return _sha256(self.loaded.spec.model_dump(mode="json"))[:16]

    @property
    def settings_sha256(self) -> str:
        """Names the spec with all its settings and its budget, but not its seeds."""
        spec = self.loaded.spec.model_dump(mode="json")
        meta = {key: value for key, value in spec["meta"].items() if key not in ("seed", "max_session")}
        return _sha256({**spec, "meta": meta})

    @property
    def seeds(self) -> range:
        """The seeds of its sessions."""
        meta = self.loaded.spec.meta
        return range(meta.seed, meta.seed + meta.max_session)


def _sha256(spec: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def plan_cells(
    suite: Suite,
    patterns: Sequence[str],
    *,
    seeds: int | None,
    frames: int | None,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
) -> list[PlannedCell]:
    """The chosen cells with their specs; `SpecError` at the place of the first whose spec or settings are wrong."""
    planned = []
    for cell in suite.select(patterns):
        own = [f"{path}={json.dumps(value)}" for path, value in cell.settings.items()]
        budget = [] if cell.frames is None else [f"{BUDGET}={cell.frames}"]
        added = [*overrides, f"meta.max_session={seeds or suite.seeds}"]
        if frames is not None:
            added.append(f"{BUDGET}={frames}")
        try:
            own_budget = cell.frames or load(cell.spec, None, own).spec.env.max_frame
            loaded = loaded_spec(load(cell.spec, None, [*own, *budget, *added]), None, settings)
        except OperantError as error:
            raise in_cell(cell, _in_words_of_frames(error, frames)) from None
        told = [*overrides, *(f"{path}={json.dumps(value, default=str)}" for path, value in settings.items())]
        planned.append(PlannedCell(cell, loaded, own_budget, tuple(told)))
    return planned


def _in_words_of_frames(error: OperantError, frames: int | None) -> OperantError:
    """The same error, where `--frames` has a part in it: it comes after every -s, which therefore cannot mend it."""
    typed = f"  -s {BUDGET}={frames}"
    lines = str(error).partition("\n  try: ")[0].splitlines()
    if frames is None or typed not in lines[:-1]:
        return error
    at = lines.index(typed)
    lines[at : at + 2] = [f"  --frames {frames}", f"{' ' * len('  --frames ')}{lines[at + 1].strip()}"]
    told = "\n".join(lines).replace("command line: ", "").replace(f"{BUDGET} = ", "--frames ")
    remedy = error.remedy and error.remedy.replace(f"add -s {BUDGET}=", "--frames ")
    return OperantError(told.replace(BUDGET, "--frames"), remedy=remedy)


def require_all(planned: Sequence[PlannedCell]) -> None:
    """Refuse, before anything is written, a cell that cannot be trained on this machine."""
    for each in planned:
        try:
            require_packages(each.loaded.spec)
            validate(each.loaded.spec, each.cell.spec)
        except OperantError as error:
            raise in_cell(each.cell, error) from None


class ResultsFolder:
    """The outcomes of cells, and the runs that they are, or will be, made from."""

    def __init__(self, folder: Path, root: Path, suite: str) -> None:
        self.folder = folder
        self._root = root
        self._suite = suite

    def finished(self, planned: PlannedCell) -> Outcome | None:
        """The cell's outcome if it was made from a run of these very settings."""
        run = self._known_run(planned)
        found = read_outcome(self.folder, planned.cell.name)
        if run is None or found is None:
            return None
        return found if run in (found.get("run"), *(part["run"] for part in found.get("parts", ()))) else None

    def runs(self, planned: PlannedCell, report: Report) -> tuple[str, list[Run]]:
        """The name and the sessions of the cell's run: the one that was begun here, or a new one."""
        spec = planned.loaded.spec
        run = self._known_run(planned)
        if run is not None and (self._root / run).is_dir():
            sessions = find_sessions(self._root / run)
            # A launcher that was killed while it made the sessions leaves fewer.
            if len(sessions) == spec.meta.max_session:
                runs_to_resume(Trial(sessions[0].path.parent), None, accept_loss=False, report=report)
                return run, sessions
        run = self._free_name(spec.name)
        self._remember(planned, run)
        runs = create_trial(
            spec.model_dump(mode="json"),
            root=self._root,
            out=self._root / run,
            source_text=planned.loaded.source,
            source_suffix=planned.loaded.suffix,
            command=running_command(),
        )
        return run, runs

    def _free_name(self, spec: str) -> str:
        """The place of a new run among those of its spec, marked as a suite's."""
        first = f"{spec}/bench-{self._suite}-{stamp(datetime.now())}"
        number = 1
        while (self._root / (run := first if number == 1 else f"{first}-{number}")).exists():
            number += 1
        return run

    def _known_run(self, planned: PlannedCell) -> str | None:
        return self._state().get(planned.cell.name, {}).get(planned.digest)

    def _remember(self, planned: PlannedCell, run: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        state = self._state()
        known = {**state.get(planned.cell.name, {}), planned.digest: run}
        write_json(self.folder / STATE_FILE, {**state, planned.cell.name: known})

    def _state(self) -> dict[str, Any]:
        file = self.folder / STATE_FILE
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
