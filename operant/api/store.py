"""Runs in a store: `push`, `pull` and `sync` by URL (S3, the Hugging Face hub, a folder), and what a store holds."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from operant.api.cards import pages
from operant.api.runs import AnyRun
from operant.errors import UsageError
from operant.report.stats import Estimate, mean_interval
from operant.report.summary import overall_state
from operant.run.documents import json_text
from operant.run.layout import RESOLVED_FILE
from operant.run.run import resolve
from operant.spec.schema import Spec
from operant.store.backend import Report, Store
from operant.store.download import Downloader, Pulled
from operant.store.listing import (
    StoredExperiment,
    choose_experiments,
    find_experiments,
    is_experiment,
    read_experiment,
    state_of,
)
from operant.store.location import is_stored, open_store
from operant.store.snapshot import experiment_of, unit_paths
from operant.store.upload import Sent, Uploader


def push(
    run: AnyRun,
    url: str | Path,
    /,
    *,
    delete: bool = False,
    force: bool = False,
    root: str | Path = "runs",
    report: Report = lambda line: None,
) -> Sent:
    """Store a run, or one trial or session of it, below a URL as NAME/STAMP; what is there already is not sent again.

    `run` may also be a URL: its run is then copied from that store to the other, such as from a development repository
    of the hub to the public one. `delete` removes there what is no longer here; `force` sends everything again, and
    replaces a newer or another run of that name.
    """
    if isinstance(run, str) and is_stored(run):
        return _copy(run, url, delete=delete, force=force, report=report)
    return uploader(run, url, delete=delete, force=force, root=root, report=report).push()


def pull(
    url: str | Path,
    pattern: str | None = None,
    /,
    *,
    root: str | Path = "runs",
    out: str | Path | None = None,
    force: bool = False,
    delete: bool = False,
    accept_loss: bool = False,
    report: Report = lambda line: None,
) -> list[Pulled]:
    """Bring stored runs to `root/NAME/STAMP`, or one of them to `out`; every byte is verified.

    The URL names a run, or a folder of runs: then the newest of its spec is meant, or all that fit `pattern`. A run
    that is here and newer or different is refused, saying what differs; `force` sets it aside. `delete` drops local
    files that are not stored. `accept_loss` leaves out checkpoints of which an object is damaged.
    """
    store = open_store(url, report)
    keys = choose_experiments(store, pattern)
    if out is not None and len(keys) > 1:
        raise UsageError(f"{len(keys)} runs fit, and --out is for one", place=store.url, remedy="--root DIR")
    pulled = []
    for key in keys:
        target = Path(out) if out is not None else Path(root) / _local_key(store, key)
        downloader = Downloader(store, key, target, force=force, delete=delete, accept_loss=accept_loss, report=report)
        pulled.append(downloader.pull())
    return pulled


def sync(
    run: AnyRun,
    url: str | Path,
    /,
    *,
    delete: bool = False,
    root: str | Path = "runs",
    report: Report = lambda line: None,
) -> Sent:
    """Push a run, and push again while it trains; returns when training has ended and everything is there."""
    from operant.store.watch import follow, nobody_trains

    pushing = uploader(run, url, delete=delete, root=root, report=report)
    return follow(pushing, over=lambda: nobody_trains(pushing.experiment), report=report)


def uploader(
    run: AnyRun,
    url: str | Path,
    *,
    delete: bool = False,
    force: bool = False,
    root: str | Path = "runs",
    report: Report = lambda line: None,
) -> Uploader:
    """What pushes a run to a URL."""
    place = (resolve(str(run), Path(root)) if isinstance(run, str | Path) else run.path).resolve()
    experiment = experiment_of(place)
    inside = place.relative_to(experiment).as_posix()
    units = unit_paths(experiment)
    only = None if inside == "." else [unit for unit in units if f"{unit}/".startswith(f"{inside}/")]
    store = open_store(url, report)
    return Uploader(
        store,
        experiment,
        only=only,
        delete=delete,
        force=force,
        report=report,
        pages=lambda store, key: pages(store, key, experiment),
    )


@dataclass(frozen=True)
class StoredTrial:
    """One trial of a stored run, for lists; `score` is over its sessions, `age` in seconds since the last upload."""

    run: str
    trial: str
    state: str
    sessions_done: int
    sessions: int
    frames: int
    score: Estimate | None
    score_is_final: bool
    size: int
    age: float

    def as_dict(self) -> dict[str, Any]:
        """The row for `--json`."""
        return {**asdict(self), "score": None if self.score is None else self.score.as_dict()}


def list_stored(url: str | Path, report: Report = lambda line: None) -> list[StoredTrial]:
    """Every trial of every run at a URL, newest first."""
    store = open_store(url, report)
    found = [read_experiment(store, key) for key in find_experiments(store)]
    rows = [row for each in found for row in _rows(store, each, datetime.now(UTC))]
    return sorted(rows, key=lambda row: row.age)


def stored_run(spec: Spec) -> str | None:
    """The URL of the newest run of this very spec, every setting the same, in the store that `meta.sync` names."""
    if spec.meta.sync is None:
        return None
    store = open_store(spec.meta.sync)
    ours = hashlib.sha256(json_text(spec.model_dump(mode="json")).encode()).hexdigest()
    found = [f"{spec.name}/{stamp}" for stamp in store.folders(spec.name)]
    for key in (key for key in sorted(found, reverse=True) if is_experiment(store, key)):
        files = read_experiment(store, key).units[""].files
        if RESOLVED_FILE in files and files[RESOLVED_FILE].sha256 == ours:
            return store.place(key)
    return None


def _rows(store: Store, stored: StoredExperiment, now: datetime) -> list[StoredTrial]:
    trials = dict.fromkeys(unit.partition("/")[0] for unit in stored.sessions)
    rows = []
    for trial in trials:
        sessions = [each for unit, each in stored.sessions.items() if unit.startswith(f"{trial}/")]
        states = [state_of(each, now) for each in sessions]
        scores = [each.facts["score"] for each in sessions if each.facts.get("score") is not None]
        updated = max(datetime.fromisoformat(each.updated) for each in sessions)
        rows.append(
            StoredTrial(
                run=stored.key or store.url.rstrip("/").rpartition("/")[2],
                trial=trial,
                state=overall_state(states),
                sessions_done=states.count("done"),
                sessions=len(states),
                frames=max(int(each.facts.get("frames", 0)) for each in sessions),
                score=mean_interval(scores) if scores else None,
                score_is_final=all(each.facts.get("score_is_final") for each in sessions),
                size=sum(each.size for each in sessions)
                + (stored.units[""].size if trial == next(iter(trials)) else 0),
                age=max(0.0, (now - updated).total_seconds()),
            )
        )
    return rows


def _copy(source: str, url: str | Path, *, delete: bool, force: bool, report: Report) -> Sent:
    """From one store to another, by way of a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="operant-copy-") as folder:
        (pulled,) = pull(source, root=folder, report=report)
        return push(pulled.path, url, delete=delete, force=force, report=report)


def _local_key(store: Store, key: str) -> str:
    """NAME/STAMP of a stored run, also where the URL names the run, or its spec's folder, itself."""
    if key.count("/") == 1:
        return key
    folders = [part for part in store.url.partition("?")[0].split("/") if part] + [
        part for part in key.split("/") if part
    ]
    return "/".join(folders[-2:])
