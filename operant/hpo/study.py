"""A search on disk: an experiment with a file that says where its jobs are kept, and the plan that its spec makes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.hpo.schedulers import Plan
from operant.hpo.storage import without_password
from operant.report.search_table import read_search
from operant.run.disk import write_json
from operant.run.layout import FORMAT, RESOLVED_FILE, SEARCH_FILE, shown
from operant.run.run import Experiment, create_experiment
from operant.spec.reading.document import lookup
from operant.spec.schema import Spec
from operant.spec.space import Space, parse
from operant.spec.stored import stored

# What may change while a search goes on: more trials, another space, how it runs.
MAY_CHANGE = (
    "search",
    "meta.max_trial",
    "meta.search_sampler",
    "meta.search_resources",
    "meta.search_keep",
    "meta.sync",
    "meta.sync_delete",
    "meta.track",
    "meta.launch",
)


@dataclass(frozen=True)
class Study:
    """A search: its folder, its spec as it is now, and what was settled when it began.

    `storage` is the address of its database without a password, None for the file in its folder.
    """

    path: Path
    spec: Spec
    name: str
    storage: str | None
    workers: int

    @property
    def space(self) -> Space:
        """The settings that it varies."""
        return parse(self.spec.search)

    @property
    def plan(self) -> Plan:
        """How many trials, and when each pauses."""
        meta, scheduler = self.spec.meta, self.spec.meta.search_scheduler
        if scheduler is None:
            return Plan(meta.max_trial, (self.spec.env.max_frame,), self.workers)
        rungs = scheduler.rungs(self.spec.env.max_frame)
        return Plan(
            meta.max_trial,
            rungs,
            self.workers,
            scheduler.name,
            scheduler.reduction_factor,
            scheduler.quantile_fraction,
            meta.seed,
        )


def create_study(
    spec: Spec,
    *,
    root: Path,
    out: Path | None,
    source_text: str,
    source_suffix: str,
    command: Sequence[str],
    storage: str | None,
    workers: int,
) -> Study:
    """Make the folder of a new search; its first trial is made when a worker claims the first job."""
    require_space(spec)
    experiment = create_experiment(
        root,
        spec.model_dump(mode="json"),
        source_text=source_text,
        source_suffix=source_suffix,
        command=command,
        out=out,
    )
    document = {
        "format": FORMAT,
        "study": f"{spec.name}-{experiment.path.name}-{uuid.uuid4().hex[:8]}",
        "storage": None if storage is None else without_password(storage),
        "workers": workers,
        "state": "stopped",
        **_described(spec),
    }
    write_json(experiment.path / SEARCH_FILE, document)
    return open_study(experiment.path)


def open_study(path: Path) -> Study:
    """The search in that folder; `UsageError` where there is none."""
    path = Path(path)
    document = read_search(path)
    if document is None:
        raise UsageError("this run is not a search", place=shown(path), remedy="operant search SPEC    (starts one)")
    spec = stored(Experiment(path).spec)
    return Study(path, spec, document["study"], document["storage"], int(document["workers"]))


def widen(study: Study, spec: Spec) -> Study:
    """Go on under a changed spec: earlier trials count. `UsageError` for a change that would make them others."""
    require_space(spec)
    before, after = study.spec.model_dump(mode="json"), spec.model_dump(mode="json")
    # A population that grew would not have made the decisions that it has made.
    may = [each for each in MAY_CHANGE if each != "meta.max_trial" or study.plan.rule != "pbt"]
    for path in different(before, after):
        if not any(path == each or path.startswith(f"{each}.") for each in may):
            raise UsageError(
                f"{path} cannot change while a search goes on: its trials so far were made with "
                f"{json.dumps(lookup(before, tuple(path.split('.'))))}",
                place=shown(study.path),
                remedy=f"change {', '.join(may)} only, or start a new search: operant search SPEC --new",
            )
    if before != after:
        write_json(study.path / RESOLVED_FILE, after)
        document = read_search(study.path) or {}
        write_json(study.path / SEARCH_FILE, {**document, **_described(spec), "state": "stopped"})
    return open_study(study.path)


def mark_done(study: Study) -> None:
    """Write down that nothing is left to do, for those who read the folder."""
    write_json(study.path / SEARCH_FILE, {**(read_search(study.path) or {}), "state": "done"})


def different(before: Mapping[str, Any], after: Mapping[str, Any], at: str = "") -> list[str]:
    """The dotted paths of the settings in which two specs differ."""
    found: list[str] = []
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping) and key != "search":
            found += different(old, new, f"{at}{key}.")
        elif old != new:
            found.append(f"{at}{key}")
    return found


def require_space(spec: Spec) -> None:
    """`UsageError` where a spec has nothing to search."""
    if not parse(spec.search):
        raise UsageError(
            f"{spec.name} has no search block, so there is nothing to search",
            remedy="add one: search: {agent.algorithm.gamma__uniform: [0.9, 0.999]}    (operant help search)",
        )


def _described(spec: Spec) -> dict[str, Any]:
    """What readers of the folder need who do not read specs: the settings that vary, and the rungs."""
    scheduler = spec.meta.search_scheduler
    rungs = (spec.env.max_frame,) if scheduler is None else scheduler.rungs(spec.env.max_frame)
    return {
        "settings": [path for dimension in parse(spec.search) for path in dimension.paths],
        "log_scaled": [
            path for dimension in parse(spec.search) if "log" in dimension.distribution.kind for path in dimension.paths
        ],
        "rungs": list(rungs),
        "sampler": spec.meta.search_sampler,
        "scheduler": None if scheduler is None else scheduler.name,
        "max_trial": spec.meta.max_trial,
    }
