"""`operant specs`, `runs`, `compare` and `plot`: looking at what there is. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from operant.cli.completers import complete_run, complete_setting, complete_spec
from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.report.plots import Axis


def specs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Print this spec's file.", autocompletion=complete_spec, show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the built-in specs, or print one as a file to start from.

    \b
      operant specs
      operant specs ppo_cartpole > my_spec.yaml
    """
    from operant.report.formatting import columns
    from operant.spec.load import builtin_names, load

    if name is not None:
        loaded = load(name, None, [])
        document({"spec": loaded.spec.model_dump(mode="json")}) if as_json else print(loaded.source, end="")
        return EXIT_DONE
    rows = builtin_names()
    if as_json:
        document({"specs": [{"name": row[0], "description": row[1]} for row in rows], "exit": EXIT_DONE})
    else:
        say(*columns([[row[0], row[1]] for row in rows]))
    return EXIT_DONE


def runs(
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="COND",
            help="Those with KEY=VALUE (also != < > <= >=): a setting, score, frames or seconds; may be repeated.",
            autocompletion=complete_setting,
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="WORD", help="new, running, stopped, failed or done.")
    ] = None,
    env: Annotated[str | None, typer.Option("--env", metavar="NAME", help="Those of an environment (ALE/*).")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Those with a tag; may be repeated.", show_default=False),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="WORDS", help="In the name, environment, algorithm or tags.")
    ] = None,
    sort: Annotated[str, typer.Option("--sort", metavar="ORDER", help="date, score, cost or name.")] = "date",
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="List at most N.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="List archived runs too.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """List the runs, newest first, with state and score; some of them, in another order, where that is asked.

    \b
      operant runs
      operant runs --where agent.algorithm.name=ppo --where 'score>400' --sort score
      operant runs --state failed --text cartpole
      operant runs --tag paper --archived
    """
    from operant.report.run_filters import RunFilter, conditions
    from operant.report.tables import experiment_rows, render_experiments

    wanted = RunFilter(conditions(where or []), state, env, tuple(tag or ()), text, archived)
    rows = experiment_rows(root, wanted=wanted, order=sort)
    if as_json:
        document({"runs": [row.as_dict() for row in rows[:limit]], "exit": EXIT_DONE})
        return EXIT_DONE
    if not rows and wanted != RunFilter():
        say("no runs match; `operant runs` without conditions lists them all")
    else:
        say(render_experiments(rows[:limit]))
    if limit is not None and len(rows) > limit:
        say(f"and {len(rows) - limit:,} more")
    return EXIT_DONE


def compare(first: RunName, second: RunName, root: Root = Path(DEFAULT_ROOT), as_json: AsJson = False) -> int:
    """Compare two runs by their seeds' scores: a winner is named only where the interval allows it.

    \b
      operant compare ppo_cartpole dqn_cartpole
    """
    from operant.api.evaluation import compare
    from operant.api.runs import open_trial
    from operant.cli.opening import open_place
    from operant.report.compare import render

    verdict = compare(*(open_trial(open_place(run, root)).path for run in (first, second)))
    if as_json:
        document({**verdict.as_dict(), "exit": EXIT_DONE})
    else:
        say(render(verdict))
    return EXIT_DONE


def plot(
    chosen: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help="Runs to draw, one line each.", autocompletion=complete_run, show_default=False
        ),
    ],
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="Column of metrics.jsonl.")] = "train/return",
    x: Annotated[str, typer.Option("--x", metavar="AXIS", help="frames, seconds, updates or episodes.")] = "frames",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the files; the run's report folder by default."),
    ] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Draw learning curves with intervals over seeds, as SVG and PNG, with the numbers as CSV.

    Several runs share one figure, which goes to the folder `plots` unless --out names another.

    \b
      operant plot ppo_cartpole
      operant plot ppo_cartpole dqn_cartpole --metric eval/score --x seconds
    """
    from operant.cli.opening import open_place
    from operant.report.plots import plot_trials
    from operant.report.read import trials_of
    from operant.run.layout import REPORT_FOLDER, shown
    from operant.run.run import find_sessions

    places = [open_place(run, root) for run in chosen]
    home = find_sessions(places[0])[0].path.parent.parent / REPORT_FOLDER if len(places) == 1 else Path("plots")
    trials = [trial for place in places for trial in trials_of(place)]
    files = plot_trials(trials, out or home, metric, cast("Axis", x))
    if as_json:
        document({"files": [shown(path) for path in files], "exit": EXIT_DONE})
    else:
        say(*(shown(path) for path in files))
    return EXIT_DONE
