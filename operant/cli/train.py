"""`operant train`, `operant resume`, and the hidden `operant session` that each seed's process runs."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.errors import DEBUG_VARIABLE
from operant.cli.options import (
    DEFAULT_ROOT,
    AsJson,
    CoordinatorAddress,
    InitializationTimeout,
    NumProcesses,
    Overrides,
    Plain,
    ProcessId,
    Root,
    RunName,
    Seed,
    Sessions,
    SpecName,
    Target,
    TrainerFlags,
    Until,
)
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED, OperantError, UsageError

if TYPE_CHECKING:
    from operant.run.run import Run
    from operant.spec.schema import Spec


def train(
    target: Target,
    name: SpecName = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run directory, instead of RUNS/NAME/STAMP.")
    ] = None,
    sessions: Sessions = None,
    seed: Seed = None,
    flags: TrainerFlags = None,
    continue_stored: Annotated[
        bool, typer.Option("--resume", help="Continue the newest run of this very spec at meta.sync, if there is one.")
    ] = False,
    until: Until = None,
    coordinator_address: CoordinatorAddress = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
    initialization_timeout: InitializationTimeout = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
    plain: Plain = False,
) -> int:
    """Train every session (seed) of a spec, and report the score with its interval.

    \b
      operant train ppo_cartpole
      operant train my_specs.yaml dqn_small -s agent.algorithm.gamma=0.98 --sessions 8
    """
    show = aside if as_json else say
    show(f"operant train {target}")
    from operant.api.training import create_runs
    from operant.cli.run_trial import run_trial
    from operant.cli.spec_summary import asked_by_flags, summary_line, translation_lines
    from operant.run.processes.distributed_config import requested_config
    from operant.spec.load import load

    world = requested_config(coordinator_address, num_processes, process_id, initialization_timeout)
    given = [*(overrides or []), *shortcuts(sessions, seed)]
    asked = asked_by_flags(flags, target, name, given)
    if asked.root is not None and root == Path(DEFAULT_ROOT):
        root = Path(asked.root)
    if asked.measures:
        from operant.cli.check import check

        return check(target, name, overrides=overrides, flags=flags, as_json=as_json)
    loaded = load(target, name, [*asked.overrides, *given])
    if world is not None:
        from operant.api.processes import check_spread, follow_leader, spread

        loaded = load(target, name, [*asked.overrides, *given, *spread(loaded.spec, world.num_processes)])
        check_spread(loaded.spec, loaded.spec.meta.max_session, world.num_processes)
        if not world.leads:
            return follow_leader(world, loaded.spec.model_dump(mode="json"), show)
    show(summary_line(loaded.spec), *translation_lines(loaded), *asked.remarks)
    if asked.resumes is not None:
        return resume(asked.resumes, until=until, root=root, as_json=as_json, plain=plain)
    if loaded.spec.search is not None:
        show("the spec has a search block: `train` runs its base setting only, `operant search` tries others")
    if continue_stored:
        url = _stored_run(loaded.spec)
        if url is not None:
            return resume(url, until=until, root=root, as_json=as_json, plain=plain)
    return run_trial(create_runs(loaded, root=root, out=out), until, as_json=as_json, plain=plain)


def resume(
    run: RunName,
    overrides: Overrides = None,
    until: Until = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue although rows or checkpoints of the run are missing.")
    ] = False,
    coordinator_address: CoordinatorAddress = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
    initialization_timeout: InitializationTimeout = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
    plain: Plain = False,
) -> int:
    """Continue every session that is not done, exactly where its newest good checkpoint left off.

    With -s the run itself stays as it is: a fork is made, which names its parent and starts
    from the parent's newest good checkpoint under the changed setting.

    \b
      operant resume ppo_cartpole
      operant resume ppo_cartpole -s env.max_frame=200000
      operant resume s3://bucket/runs/ppo_cartpole
    """
    show = aside if as_json else say
    show(f"operant resume {run}")
    from operant.run.processes.distributed_config import requested_config

    world = requested_config(coordinator_address, num_processes, process_id, initialization_timeout)
    if world is not None and not world.leads:
        from operant.api.processes import follow_leader

        return follow_leader(world, None, show)
    from operant.api.runs import Trial
    from operant.api.training import brought_here, create_fork_runs, runs_to_resume
    from operant.cli.opening import warn
    from operant.cli.run_trial import run_trial
    from operant.run.layout import SEARCH_FILE, shown
    from operant.run.run import find_sessions, resolve

    place = resolve(str(brought_here(run, root, show)), root).resolve()
    if (place / SEARCH_FILE).is_file():
        return _resume_search(place, overrides or [], as_json, plain)
    find_sessions(place)
    if overrides:
        warn(place, show)
        todo = create_fork_runs(Trial(place), overrides, root=root)
        fork = todo[0].path.parent.parent
        show(f"fork {shown(fork)} of {shown(place)} with {', '.join(overrides)}")
    else:
        todo = runs_to_resume(Trial(place), until, accept_loss=accept_loss, report=show, warn=lambda: warn(place, show))
    if not todo:
        if world is not None:
            from operant.api.processes import dismiss

            dismiss(world, find_sessions(place)[0])
        return _nothing_to_do(place, until, as_json)
    if world is not None:
        from operant.api.processes import check_runs

        check_runs(todo, world)
    for each in todo:
        show(_continuing(each))
    return run_trial(todo, until, as_json=as_json, plain=plain)


def _resume_search(place: Path, overrides: list[str], as_json: bool, plain: bool) -> int:
    """A search goes on as a whole: its trials wait for each other's results."""
    from operant.api.search import continued
    from operant.cli.search import run_search
    from operant.spec.load import load

    study = continued(place, lambda source: load(str(source), None, overrides) if overrides else None)
    return run_search(study, None, as_json=as_json, plain=plain)


def session(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="A session's directory, or several.")],
    until: Until = None,
) -> int:
    """Train one session in this process, or several as one program; `train` and `resume` start this."""
    from operant.launch.budget import library_environment
    from operant.launch.parent_watch import exit_when_signalled, stop_with_parent

    exit_when_signalled()
    stop_with_parent()
    # Standard error is the attempt's log here, and that is where a traceback belongs.
    os.environ.setdefault(DEBUG_VARIABLE, "1")
    from operant.run.processes.distributed_config import distributed_config
    from operant.run.run import Run

    runs = [Run.open(run_dir) for run_dir in run_dirs]
    joined = distributed_config()
    if joined is not None and not joined.leads:
        from operant.api.processes import follow_leader

        return follow_leader(joined, runs[0].spec, aside)
    # Numerical libraries read these when they are loaded, which the engine does next.
    os.environ.update(library_environment(runs[0].threads))
    from operant.engines import engine_of
    from operant.launch.prepare import reached
    from operant.spec.stored import stored

    attempts_before = runs[0].attempts
    try:
        _train_here(engine_of(stored(runs[0].spec)), runs, until)
    except OperantError:
        raise
    except Exception:
        # A session that had begun has recorded the cause, and its traceback in the log, already.
        if runs[0].attempts == attempts_before:
            raise
        return EXIT_FAILED
    return EXIT_DONE if all(reached(run, until) for run in runs) else EXIT_STOPPED


def fork_server(engine: Annotated[str, typer.Argument(metavar="ENGINE", help="The engine to load.")]) -> int:
    """Load an engine and fork a session for each request on standard input; `search` starts this."""
    from operant.engines import load
    from operant.launch import budget, parent_watch, prepare  # noqa: F401  (for the forked processes)
    from operant.launch.fork_server import serve
    from operant.run.provenance import installed_packages

    load(engine).preload()
    installed_packages()
    serve(_forked_session)
    return EXIT_DONE


def _forked_session(words: list[str]) -> int:
    """Carry out the words of a `session` command without building the whole command line anew."""
    limit = words.index("--until") if "--until" in words else len(words)
    try:
        return session([Path(word) for word in words[1:limit]], int(words[limit + 1]) if words[limit:] else None)
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except OperantError as error:
        aside(str(error))
        return error.exit_code


def _train_here(engine: ModuleType, runs: list[Run], until: int | None) -> None:
    if len(runs) == 1:
        engine.train(runs[0], until)
    elif hasattr(engine, "train_together"):
        engine.train_together(runs, until)
    else:
        raise UsageError("this engine trains one session in a process", remedy=f"operant session {runs[0].path}")


def _stored_run(spec: Spec) -> str | None:
    from operant.api.store import stored_run

    if spec.meta.sync is None:
        raise UsageError("--resume looks for the run at meta.sync, which is not set", remedy="-s meta.sync=s3://...")
    return stored_run(spec)


def shortcuts(sessions: int | None, seed: int | None) -> list[str]:
    """`--sessions` and `--seed` as the overrides that they stand for."""
    chosen = {"meta.max_session": sessions, "meta.seed": seed}
    return [f"{path}={value}" for path, value in chosen.items() if value is not None]


def _nothing_to_do(place: Path, until: int | None, as_json: bool) -> int:
    from operant.run.layout import shown

    goal = "is done" if until is None else f"has reached {until:,} frames"
    if as_json:
        content: dict[str, Any] = {"run": shown(place), "state": "done", "resumed": 0, "exit": EXIT_DONE}
        document(content)
    else:
        say(
            f"{shown(place)}: every session {goal}; nothing to resume",
            f"  look:     operant show {shown(place)}",
            f"  extend:   operant resume {shown(place)} -s env.max_frame=...    (a fork with a larger budget)",
        )
    return EXIT_DONE


def _continuing(run: Run) -> str:
    from operant.run.checkpoint import list_checkpoints

    saved = list_checkpoints(run.checkpoints)
    start = f"at frame {saved[-1].at.frames:,}" if saved else "at frame 0"
    return f"  {run.path.name} continues {start} of {run.max_frame:,}"
