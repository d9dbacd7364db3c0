"""`operant bench`: train a suite of specs, write a table, and fail if a cell became worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.completers import complete_suite
from operant.cli.options import DEFAULT_ROOT, AsJson, Overrides, Root
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.benchmark.estimate import CellCost


def bench(
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            help="A built-in suite (quick, classic, box2d, mujoco, atari) or a suite file.",
            autocompletion=complete_suite,
            show_default=False,
        ),
    ],
    cells: Annotated[
        list[str] | None,
        typer.Option(
            "--cells",
            metavar="PATTERN",
            help="Only these cells: a name, a pattern such as 'ppo*', or several with commas; may be repeated.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", min=1, help="Seeds per cell, instead of the suite's.")
    ] = None,
    frames: Annotated[
        int | None, typer.Option("--frames", metavar="N", min=1, help="Frames per seed, instead of the suite's.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Sessions at once (default: one per core).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Results: a JSON file a cell and RESULTS.md (default: bench/SUITE)."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="DIR", help="Compare with the results in this folder; 1 if a cell is worse."),
    ] = None,
    speed: Annotated[
        bool, typer.Option("--speed", help="With --against, tell frames per second too; never fails.")
    ] = False,
    add: Annotated[
        bool,
        typer.Option("--add", help="Join these seeds with those of the same settings that --out has results of."),
    ] = False,
    show_cells: Annotated[
        bool, typer.Option("--list", help="Show the cells, their budgets and the time they may take; train nothing.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option("--estimate/--no-estimate", help="With --list, train each spec for a second to tell the time."),
    ] = True,
    overrides: Overrides = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Train every cell of a suite, write what it gave, and compare that with earlier results.

    A stopped bench goes on where it was with the same command. Exit code 1 means that --against
    found a cell worse than stored, at the 95 % level over all cells together.

    \b
      operant bench quick
      operant bench quick --out bench/new --against bench/quick
      operant bench my_suite.yaml --cells 'ppo*' --seeds 8
      operant bench my_suite.yaml --cells 'ppo*' --seeds 4 -s meta.seed=8 --add
      operant bench classic --list
    """
    patterns = [each for given in cells or [] for each in given.split(",") if each]
    if show_cells:
        return _list(suite, patterns, seeds, frames, jobs, overrides or [], measure, as_json)
    show = aside if as_json else say
    from operant.benchmark.bench import bench
    from operant.benchmark.gate import EXIT_WORSE

    result = bench(
        suite,
        cells=patterns,
        seeds=seeds,
        frames=frames,
        jobs=jobs,
        out=out,
        against=against,
        speed=speed,
        add=add,
        root=root,
        overrides=overrides or [],
        report=show,
    )
    code = EXIT_WORSE if result.worse else EXIT_DONE
    if as_json:
        document({**result.as_dict(), "exit": code})
    return code


def _list(
    name: str,
    patterns: list[str],
    seeds: int | None,
    frames: int | None,
    jobs: int | None,
    overrides: list[str],
    measure: bool,
    as_json: bool,
) -> int:
    from operant.benchmark.estimate import estimate_cells
    from operant.benchmark.load import load_suite
    from operant.benchmark.plan import plan_cells
    from operant.report.formatting import duration

    suite = load_suite(name)
    planned = plan_cells(suite, patterns, seeds=seeds, frames=frames, overrides=overrides, settings={})
    found = []
    if not as_json:
        say(f"{suite.name}: {suite.description}".rstrip(": "))
    for cost in estimate_cells(planned, measure, jobs):
        found.append(cost)
        if not as_json:
            say(_cost_line(cost))
    total = sum(cost.seconds or 0.0 for cost in found)
    if as_json:
        facts = {"suite": suite.name, "description": suite.description, "seconds": total if measure else None}
        document({**facts, "cells": [cost.as_dict() for cost in found], "exit": EXIT_DONE})
    elif measure:
        say(f"about {duration(total)} on this machine")
    return EXIT_DONE


def _cost_line(cost: CellCost) -> str:
    from operant.report.formatting import duration

    figure = f"  published {cost.published:g}" if cost.published is not None else ""
    took = f"  about {duration(cost.seconds)}" if cost.seconds is not None else f"  {cost.note}" if cost.note else ""
    return f"  {cost.cell:30} {cost.env:28} {cost.seeds} x {cost.frames:>11,} frames{figure}{took}"
