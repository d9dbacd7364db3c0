"""Training from Python: `train` returns when it is done, `start` at once; both take a spec, `resume` takes a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from operant.api.handle import Handle
from operant.api.progress import watched
from operant.api.runs import Experiment, Session, Trial, open_trial
from operant.api.search import search, search_place
from operant.api.specs import AnySpec, loaded_spec, validate
from operant.engines import require_packages
from operant.errors import RunError
from operant.launch.fork import create_fork, experiment_of
from operant.launch.parent_watch import await_orphans
from operant.launch.prepare import create_trial, unfinished
from operant.run.inventory import Fault, faults
from operant.run.layout import RESOLVED_FILE, RUN_FILE, shown
from operant.run.provenance import running_command
from operant.run.run import Run, find_sessions
from operant.spec.fork import check_fork
from operant.spec.load import Loaded
from operant.spec.stored import stored
from operant.store.backend import Report
from operant.store.location import check_sync, is_stored
from operant.trackers.start import require_trackers

T = TypeVar("T")


def train(
    spec: AnySpec,
    name: str | None = None,
    /,
    *,
    sessions: int | None = None,
    seed: int | None = None,
    until: int | None = None,
    root: str | Path = "runs",
    out: str | Path | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Trial:
    """Train every session (seed) of a spec and return the trial with its score.

    `spec` is a built-in name, a file (with `name` where it holds several), a mapping or a `Spec`. `settings` change
    it: by a name that is unique in it (`gamma=0.98`), by section (`env={"num_envs": 8}`) or by path
    (`**{"agent.algorithm.gamma": 0.98}`). `sessions` seeds are trained from `seed` on; `until` pauses at so many
    frames. The run directory is `out`, or `root/NAME/STAMP`. `progress` shows a live view, by default in a
    terminal and in a notebook. Raises `SpecError` for a wrong spec, `RunError` if a session fails.
    """
    handle = start(spec, name, sessions=sessions, seed=seed, until=until, root=root, out=out, **settings)
    return watched(handle, progress)


def start(
    spec: AnySpec,
    name: str | None = None,
    /,
    *,
    sessions: int | None = None,
    seed: int | None = None,
    until: int | None = None,
    root: str | Path = "runs",
    out: str | Path | None = None,
    **settings: Any,
) -> Handle:
    """As `train`, but return at once a handle on the sessions, which train in processes of their own."""
    chosen = {"meta.max_session": sessions, "meta.seed": seed}
    settings |= {path: value for path, value in chosen.items() if value is not None}
    loaded = loaded_spec(spec, name, settings)
    return Handle(create_runs(loaded, root=root, out=out), until)


def resume(
    run: str | Path | Trial | Session | Experiment,
    /,
    *,
    until: int | None = None,
    accept_loss: bool = False,
    root: str | Path = "runs",
    progress: bool | None = None,
    **settings: Any,
) -> Trial:
    """Continue every session that is not done exactly where its newest good checkpoint left off, to the end.

    With `settings` the run stays as it is: a fork is made, which names its parent and starts from the parent's newest
    good checkpoint under the changed setting. `accept_loss` continues although rows or checkpoints are missing.
    A run that is named by the URL of a store is pulled to `root` first, unless the one that is here is newer.
    A search goes on as a whole, as with `search`, and its best trial is returned.
    """
    here = brought_here(run, root)
    place = (
        None
        if isinstance(here, Trial | Session)
        else search_place(here if isinstance(here, str | Path) else here.path, root)
    )
    if place is not None:
        return search(place, root=root, **settings).best
    trial = open_trial(here, root)
    if settings:
        runs = create_fork_runs(trial, settings, root=root)
    else:
        runs = runs_to_resume(trial, until, accept_loss=accept_loss)
    return watched(Handle(runs, until), progress) if runs else trial


def create_runs(loaded: Loaded, *, root: str | Path, out: str | Path | None) -> list[Run]:
    """The run directories of a new trial; nothing is written if the engine refuses the spec."""
    require_packages(loaded.spec)
    require_trackers(loaded.spec.meta.track)
    validate(loaded.spec, str(loaded.path or loaded.spec.name))
    check_sync(loaded.spec.meta.sync)
    return create_trial(
        loaded.spec.model_dump(mode="json"),
        root=Path(root),
        out=None if out is None else Path(out),
        source_text=loaded.source,
        source_suffix=loaded.suffix,
        command=running_command(),
    )


def runs_to_resume(
    trial: Trial,
    until: int | None,
    *,
    accept_loss: bool,
    report: Callable[[str], None] = lambda line: None,
    warn: Callable[[], object] = lambda: None,
) -> list[Run]:
    """The sessions that have frames to go, once no process of a killed launcher holds one.

    `report` is called with a line about such processes, `warn` when none holds one any more.
    """
    sessions = find_sessions(trial.path)
    await_orphans(sessions, report)
    warn()
    if not accept_loss:
        refuse_loss(trial.path, faults(trial.path), f"operant resume {shown(trial.path)}")
    todo = unfinished(sessions, until)
    if todo:
        require_packages(stored(todo[0].spec))
    return todo


def create_fork_runs(trial: Trial, settings: dict[str, Any] | Sequence[str], *, root: str | Path) -> list[Run]:
    """The run directories of a fork: the same sessions under changed settings, from their newest checkpoints."""
    from operant.spec.load import load

    parents = find_sessions(trial.path)
    parent = experiment_of(parents)
    # A trial of a search has settings of its own.
    own = parents[0].path.parent / RESOLVED_FILE
    source = own if own.is_file() else parent.path / RESOLVED_FILE
    changed = isinstance(settings, dict)
    loaded = loaded_spec(source, None, settings) if changed else load(str(source), None, settings)
    check_fork(stored(parents[0].spec), loaded.spec, shown(parent.path), shown(source))
    require_packages(loaded.spec)
    require_trackers(loaded.spec.meta.track)
    validate(loaded.spec, shown(parent.path))
    check_sync(loaded.spec.meta.sync)
    _, runs = create_fork(
        parents,
        loaded.spec.model_dump(mode="json"),
        root=Path(root),
        command=running_command(),
        source_text=loaded.source,
    )
    return runs


def brought_here(run: T, root: str | Path, report: Report = lambda line: None) -> T | Path:
    """The run as it was named, or where it is now if it was named by the URL of a store."""
    if not isinstance(run, str) or not is_stored(run):
        return run
    from operant.api.store import pull

    (pulled,) = pull(run, root=root, report=report)
    report(f"{shown(pulled.path)} is {pulled.state.replace('ahead', 'newer')}: {pulled.source}")
    return pulled.path


def refuse_loss(place: Path, found: list[Fault], command: str) -> None:
    """`RunError` where a resume would continue with rows missing, or start at 0."""
    grave = [fault for fault in found if fault.harms_resume and fault.path.name != RUN_FILE]
    if grave:
        raise RunError(
            f"the resume would continue without what is missing: {'; '.join(map(str, grave))}",
            place=shown(place),
            remedy=f"restore from a copy, or continue without: {command} --accept-loss",
        )
