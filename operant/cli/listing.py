"""`operant specs` and `runs`: looking at what there is. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.completers import complete_spec
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


def runs(root: Root = Path(DEFAULT_ROOT), as_json: AsJson = False) -> int:
    """List the runs, newest first, with state and score.

    \b
      operant runs
      operant runs --root elsewhere
    """
    from operant.report.tables import experiment_rows, render_experiments

    rows = experiment_rows(root)
    if as_json:
        document({"runs": [row.as_dict() for row in rows], "exit": EXIT_DONE})
    else:
        say(render_experiments(rows))
    return EXIT_DONE
