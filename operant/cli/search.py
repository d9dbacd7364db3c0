"""`operant search`: try settings of a spec, continue a search, and write down the best of one."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.completers import complete_spec
from operant.cli.options import DEFAULT_ROOT, AsJson, Overrides, Plain, Root
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, EXIT_STOPPED, UsageError

if TYPE_CHECKING:
    from operant.hpo.search import Search
    from operant.hpo.study import Study

BEST = "best"
POLL_SECONDS = 0.1
FINISHING = "stopping: each session finishes its update and saves; Ctrl-C again to stop now"

Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="Database for workers on several machines (postgresql://USER@HOST/DB); also OPERANT_STORAGE.",
        show_default=False,
    ),
]


def search(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A spec with a search block, or the folder of a search to continue; `best` with a folder.",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which spec, when the file holds several.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", min=1, help="Trials in all; sets meta.max_trial.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Trials decided on at once; settled when a search begins."),
    ] = None,
    storage: Storage = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the search, instead of RUNS/NAME/STAMP.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new search although one of this spec is not over.")
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="With `best`: write that trial's spec to a file.")
    ] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
    plain: Plain = False,
) -> int:
    """Try settings of a spec as its search block says, and rank the trials.

    Started again after a stop or a kill it goes on where it was, with the same trials and the
    same promotions. Several may work on one search at once; none trains what another does.

    \b
      operant search ppo_cartpole_search
      operant search runs/ppo_cartpole_search/20260101-120000 --trials 64
      operant search best ppo_cartpole_search --write best.yaml
    """
    if target == BEST:
        return _best(name, write, root, as_json)
    if write is not None:
        raise UsageError("--write goes with `best`", remedy=f"operant search best RUN --write {write}")
    show = aside if as_json else say
    show(f"operant search {target}")
    study = _study(target, name, list(overrides or []), trials, workers, storage, out, new, root)
    return run_search(study, storage, as_json=as_json, plain=plain)


def run_search(study: Study, storage: str | None, *, as_json: bool, plain: bool) -> int:
    """Work on a study to its end and print the ranking; returns the exit code."""
    from operant.api.search import open_worker
    from operant.cli.run_trial import tell_sync
    from operant.cli.search_summary import search_document, search_ending
    from operant.launch.stop_signals import StopSignals
    from operant.report.search_live import search_view
    from operant.run.layout import shown

    show = aside if as_json else say
    show(*_plan(study))
    stream = sys.stderr if as_json else sys.stdout
    with StopSignals() as signals, search_view(study.path, stream, plain=plain or as_json) as view:
        worker = open_worker(study, storage, view.say)
        try:
            _drive(worker, signals, view)
            # Before the last upload, which is to have the figures that this draws.
            ending = [] if as_json else search_ending(study.path)
        finally:
            asked = signals.count
            worker.close(leave=lambda: signals.count > asked)
    code = EXIT_STOPPED if worker.stopped else EXIT_DONE
    if as_json:
        document({**search_document(study.path), "exit": code})
    else:
        say(*ending)
        if worker.stopped:
            say("", f"stopped; what was trained is saved. Continue: operant search {shown(study.path)}")
    tell_sync(study.path)
    return code


def _drive(worker: Search, signals: Any, view: Any) -> None:
    told = 0
    while worker.busy:
        if signals.count > told:
            told = signals.count
            view.say(FINISHING if told == 1 else "stopping now; the last checkpoints are good")
        worker.stop(signals.count)
        worker.advance()
        view.refresh()
        time.sleep(POLL_SECONDS)


def _study(
    target: str,
    name: str | None,
    overrides: list[str],
    trials: int | None,
    workers: int | None,
    storage: str | None,
    out: Path | None,
    new: bool,
    root: Path,
) -> Study:
    from operant.api.search import begun, continued, search_place
    from operant.spec.load import load

    if trials is not None:
        overrides.append(f"meta.max_trial={trials}")
    place = search_place(target, root)
    if place is not None:
        return continued(place, lambda source: load(str(source), None, overrides) if overrides else None)
    loaded = load(target, name, overrides)
    return begun(loaded, root=root, out=out, storage=storage, workers=workers, new=new)


def _plan(study: Study) -> list[str]:
    from operant.report.search_table import search_rows
    from operant.run.layout import shown

    plan, meta = study.plan, study.spec.meta
    sessions = f" of {plural(meta.max_session, 'session')}" if meta.max_session > 1 else ""
    rungs = " -> ".join(f"{rung:,}" for rung in plan.rungs)
    size = plural(plan.max_trial, "trial") if plan.rule != "pbt" else f"a population of {plan.max_trial} trials"
    kept = "" if study.storage is None else f", jobs in {study.storage}"
    begun = len(search_rows(study.path))
    return [
        f"{study.spec.name}: {size}{sessions}, sampler {meta.search_sampler},"
        f" frames {rungs}, {plural(plan.workers, 'worker')}",
        f"{shown(study.path)}{kept}" + (f": continues, {plural(begun, 'trial')} begun" if begun else ""),
    ]


def _best(run: str | None, write: Path | None, root: Path, as_json: bool) -> int:
    """The best trial of a search, and its spec as a file."""
    from operant.api.search import search_place, write_best
    from operant.report.search_lineage import schedule_lines
    from operant.report.search_table import best_trial, search_rows, settings_text
    from operant.run.layout import shown
    from operant.run.run import resolve

    if run is None:
        raise UsageError("of which search?", remedy="operant search best RUN --write best.yaml")
    place = search_place(resolve(run, root), root)
    if place is None:
        raise UsageError(f"{run} is not a search", remedy="operant runs    (lists what there is)")
    row = write_best(place, write) if write is not None else best_trial(place)
    if as_json:
        document({**row.as_dict(), "written": None if write is None else str(write), "exit": EXIT_DONE})
        return EXIT_DONE
    say(f"trial {row.trial}: score {row.score}", f"  {settings_text(row.settings)}", f"  {shown(row.path)}")
    schedule = schedule_lines(search_rows(place), row.trial)
    if schedule:
        say("its weights were trained with these settings in turn:", *(f"  {line}" for line in schedule))
    if write is not None:
        last = ": a spec with the last of these settings, for a run of its own from frame 0" if schedule else ""
        say(f"wrote {write}{last}", "next:", f"  operant train {write}")
    else:
        say("next:", f"  operant search best {run} --write best.yaml")
    return EXIT_DONE
