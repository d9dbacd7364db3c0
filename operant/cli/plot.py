"""`operant plot`: learning curves and performance profiles as files. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, By, Price, Root, RunNames
from operant.cli.output import document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.report.plots import Axis


def plot(
    chosen: RunNames,
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="Column of metrics.jsonl.")] = "train/return",
    x: Annotated[
        str, typer.Option("--x", metavar="AXIS", help="frames, seconds, updates, episodes, tokens or cost.")
    ] = "frames",
    by: By = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Draw performance profiles: the share of seeds above each score.")
    ] = False,
    price: Price = None,
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
      operant plot ppo_cartpole dqn_cartpole --metric eval/score --x cost --price 0.50
      operant plot ppo_cartpole dqn_cartpole --profile
    """
    from operant.cli.opening import open_place
    from operant.report.plots import plot_trials
    from operant.report.profile_plot import plot_profiles
    from operant.report.read import trials_of
    from operant.run.layout import REPORT_FOLDER, shown
    from operant.run.run import find_sessions

    places = [open_place(run, root) for run in chosen]
    home = find_sessions(places[0])[0].path.parent.parent / REPORT_FOLDER if len(places) == 1 else Path("plots")
    trials = [trial for place in places for trial in trials_of(place)]
    if profile:
        files = plot_profiles(trials, out or home, by)
    else:
        files = plot_trials(trials, out or home, metric, cast("Axis", x), by=by, price=price)
    if as_json:
        document({"files": [shown(path) for path in files], "exit": EXIT_DONE})
    else:
        say(*(shown(path) for path in files))
    return EXIT_DONE
