"""Searching from Python: `search` tries settings of a spec and returns the trials, best first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.api.runs import Trial
from operant.api.specs import AnySpec, loaded_spec, validate
from operant.engines import require_packages
from operant.errors import StoppedError, UsageError
from operant.report.search_lineage import schedule_lines
from operant.report.search_table import TrialRow, best_trial, ranked, read_search, search_rows
from operant.run.layout import RESOLVED_FILE, SEARCH_FILE, shown
from operant.run.provenance import running_command
from operant.run.run import list_experiments
from operant.spec.load import Loaded
from operant.store.location import check_sync
from operant.trackers.start import require_trackers

if TYPE_CHECKING:
    from operant.hpo.search import Search
    from operant.hpo.study import Study

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class SearchResult:
    """A search on disk, read at each use. Its trials are ordinary trials of one experiment."""

    path: Path

    @property
    def rows(self) -> list[TrialRow]:
        """Every trial with its settings, score, rung and frames, in order."""
        return search_rows(self.path)

    @property
    def trials(self) -> list[Trial]:
        """The trials, best first."""
        return [Trial(row.path) for row in ranked(self.rows)]

    @property
    def best(self) -> Trial:
        """The trial that came furthest, and among those scored best."""
        return Trial(best_trial(self.path).path)

    @property
    def best_settings(self) -> dict[str, Any]:
        """The searched settings of the best trial, by dotted path."""
        return best_trial(self.path).settings

    @property
    def state(self) -> str:
        """done, or stopped where trials are left to run."""
        return str((read_search(self.path) or {}).get("state", "stopped"))


def search(
    spec: AnySpec,
    name: str | None = None,
    /,
    *,
    trials: int | None = None,
    workers: int | None = None,
    seed: int | None = None,
    storage: str | None = None,
    root: str | Path = "runs",
    out: str | Path | None = None,
    new: bool = False,
    report: Callable[[str], None] = lambda line: None,
    **settings: Any,
) -> SearchResult:
    """Try settings of a spec as its `search` block says, and return the trials.

    The folder of a search, or a spec whose newest search is not over, is gone on with, unless `new` is set. `trials`
    sets `meta.max_trial`. `workers` is how many trials are decided on at once, settled when the search begins; by
    default as many as fit on this machine, and no more than there are trials. `storage` is the address of a database
    server, for workers on several machines. Other arguments are those of `train`. `report` is called with a line about
    what happens.
    """
    chosen = {"meta.max_trial": trials, "meta.seed": seed}
    settings |= {path: value for path, value in chosen.items() if value is not None}
    place = search_place(spec, root) if isinstance(spec, str | Path) else None
    if place is not None:
        study = continued(place, lambda source: loaded_spec(source, None, settings) if settings else None)
    else:
        loaded = loaded_spec(spec, name, settings)
        study = begun(loaded, root=root, out=out, storage=storage, workers=workers, new=new)
    worker = open_worker(study, storage, report)
    try:
        while worker.busy:
            worker.advance()
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        stop_worker(worker)
        raise StoppedError("stopped by the user", remedy=f"operant search {shown(study.path)}") from None
    finally:
        worker.close()
    return SearchResult(study.path)


def search_place(target: str | Path, root: str | Path) -> Path | None:
    """The folder of a search that is named, by its path or as NAME/STAMP; None for anything else, such as a spec."""
    places = (Path(target), Path(root) / target)
    return next((place.resolve() for place in places if (place / SEARCH_FILE).is_file()), None)


def begun(
    loaded: Loaded,
    *,
    root: str | Path,
    out: str | Path | None,
    storage: str | None,
    workers: int | None,
    new: bool,
    command: Sequence[str] | None = None,
) -> Study:
    """The newest search of the same spec that is not over, or a new one; nothing is written if it cannot run."""
    from operant.hpo.resources import lanes, slots
    from operant.hpo.storage import connect, database_url, given_storage, require_optuna
    from operant.hpo.study import create_study, require_space

    spec = loaded.spec
    require_optuna()
    require_space(spec)
    require_packages(spec)
    require_trackers(spec.meta.track)
    validate(spec, str(loaded.path or spec.name))
    check_sync(spec.meta.sync)
    if out is not None and (Path(out) / SEARCH_FILE).is_file():
        return continued(Path(out), lambda source: loaded)
    unfinished = None if new or out is not None else _unfinished(loaded, Path(root))
    if unfinished is not None:
        return continued(unfinished, lambda source: loaded)
    storage = given_storage(storage, None, spec.name)
    if storage is not None:
        connect(database_url(Path(), storage)).dispose()
    return create_study(
        spec,
        root=Path(root),
        out=None if out is None else Path(out),
        source_text=loaded.source,
        source_suffix=loaded.suffix,
        command=command or running_command(),
        storage=storage,
        workers=workers or min(len(slots(spec.meta.search_resources)) * lanes(spec), spec.meta.max_trial),
    )


def continued(place: Path, changed: Callable[[Path], Loaded | None]) -> Study:
    """The search in that folder, under a changed spec where `changed` gives one for the file of its present one."""
    from operant.hpo.study import open_study, widen

    study = open_study(place)
    require_packages(study.spec)
    loaded = changed(place / RESOLVED_FILE)
    return study if loaded is None else widen(study, loaded.spec)


def open_worker(study: Study, storage: str | None, report: Callable[[str], None]) -> Search:
    """A worker of the study, which trains as many trials at once as fit here."""
    from operant.hpo.search import Search
    from operant.hpo.storage import given_storage

    return Search(study, given_storage(storage, study.storage, shown(study.path)), report)


def stop_worker(worker: Search) -> None:
    """Let the sessions save, and wait until they have."""
    worker.stop(1)
    while worker.busy:
        worker.advance()
        time.sleep(POLL_SECONDS)


def write_best(place: Path, file: Path) -> TrialRow:
    """Write the spec of the best trial to a file, to be trained by itself; an existing file is not overwritten.

    Of a fork these are its last settings; those of its ancestors are named in a comment, where the file can have one.
    """
    import json

    from operant.spec.dialects.write import spec_yaml

    row = best_trial(place)
    data = json.loads((row.path / RESOLVED_FILE).read_bytes())
    data = {key: value for key, value in data.items() if key != "search"}
    if file.exists():
        raise UsageError("this file exists already", place=str(file), remedy="name another file, or remove it")
    about = [f"Trial {row.trial} of {shown(place)}, the best of its search."]
    schedule = schedule_lines(search_rows(place), row.trial)
    if schedule:
        about += ["Its weights were trained with these settings in turn, of which this file has the last:", *schedule]
    is_json = file.suffix == ".json"
    text = json.dumps(data, indent=2) + "\n" if is_json else spec_yaml(data["name"], data, *about)
    file.write_text(text, "utf-8")
    return row


def _unfinished(loaded: Loaded, root: Path) -> Path | None:
    """The newest search of this very spec, if it is not over."""
    found = [each.path for each in list_experiments(root) if each.path.parent.name == loaded.spec.name]
    searches = [path for path in found if (path / SEARCH_FILE).is_file()]
    if not searches or (read_search(searches[-1]) or {}).get("state") == "done":
        return None
    same = search_spec(searches[-1]) == loaded.spec.model_dump(mode="json")
    return searches[-1] if same else None


def search_spec(place: Path) -> dict[str, Any]:
    """The spec of a search as it is now."""
    from operant.run.run import Experiment

    return Experiment(place).spec
