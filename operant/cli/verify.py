"""`operant verify`: whether a run can be had again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DIFFERS, EXIT_DONE


def verify(
    run: RunName,
    fraction: Annotated[
        float, typer.Option("--fraction", metavar="SHARE", help="How much of each session to run again, up to 1.")
    ] = 0.1,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Keep the rerun in this new folder.")] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Run the first part of a run again from its record, and compare every row, episode and weight.

    Where they differ, the ingredient that is another one now is named: setting, seed, line of code, package,
    arithmetic of the machine. The run is only read. Exit code 0: equal or inside the interval; 1: different.

    \b
      operant verify ppo_cartpole
      operant verify ppo_cartpole --fraction 1
    """
    from operant.api.verify import verify
    from operant.cli.opening import open_place

    place = open_place(run, root)
    found = verify(place, fraction=fraction, out=out, progress=False if as_json else None, report=aside)
    code = EXIT_DONE if found.verified else EXIT_DIFFERS
    if as_json:
        document({**found.as_dict(), "exit": code})
    else:
        say(str(found))
    return code
