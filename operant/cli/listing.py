"""`operant specs` and `runs`: looking at what there is. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.completers import complete_setting, complete_spec
from operant.cli.options import DEFAULT_ROOT, AsJson, Root
from operant.cli.output import document, say
from operant.errors import EXIT_DONE


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
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            metavar="ORDER",
            help="date, score, name or cost: dollars where all runs have a price, else CPU- and GPU-seconds.",
        ),
    ] = "date",
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
