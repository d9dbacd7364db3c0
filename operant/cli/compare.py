"""`operant compare`: which of several runs is better. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, By, Price, Root, RunNames
from operant.cli.output import document, say
from operant.errors import EXIT_DONE


def compare(
    runs: RunNames,
    by: By = None,
    difference: Annotated[
        float | None,
        typer.Option(
            "--difference",
            metavar="D",
            help="Say how many seeds would show a difference of D; by default the one found.",
            show_default=False,
        ),
    ] = None,
    price: Price = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Compare runs by their seeds' scores and what they cost: a winner is named only where the seeds allow it.

    \b
      operant compare ppo_cartpole dqn_cartpole a2c_cartpole
      operant compare ppo_cartpole ppo_acrobot dqn_cartpole dqn_acrobot --by agent.algorithm.name
    """
    from operant.api.evaluation import compare
    from operant.cli.opening import open_place

    found = compare(*(open_place(run, root) for run in runs), by=by, difference=difference, price_per_hour=price)
    if as_json:
        document({**found.as_dict(), "exit": EXIT_DONE})
    else:
        say(str(found))
    return EXIT_DONE
