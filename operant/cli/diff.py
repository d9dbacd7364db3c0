"""`operant diff`: in what two runs or specs differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.completers import complete_run
from operant.cli.options import DEFAULT_ROOT, AsJson, Root
from operant.cli.output import document, say
from operant.errors import EXIT_DONE

Side = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run as in other commands, a spec file, or a built-in spec (spec:NAME where a run has the name).",
        autocompletion=complete_run,
        show_default=False,
    ),
]


def diff(first: Side, second: Side, root: Root = Path(DEFAULT_ROOT), as_json: AsJson = False) -> int:
    """Say in what two runs differ: settings, seeds, code, packages, arithmetic, machine, result.

    What most likely matters comes first. Either may be a spec that was not run.

    \b
      operant diff ppo_cartpole/20260101-120000 ppo_cartpole
      operant diff ppo_cartpole spec:ppo_cartpole
      operant diff mine.yaml ppo_cartpole --json
    """
    from operant.api.diff import diff

    found = diff(first, second, root)
    if as_json:
        document({**found.as_dict(), "exit": EXIT_DONE})
    else:
        say(str(found))
    return EXIT_DONE
