"""`operant app`: the dashboard and the viewer of trajectories, in a browser on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson
from operant.cli.output import document, say
from operant.errors import EXIT_DONE, UsageError


def app(
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS", help="Folder that holds the runs, one run, or a file of episodes.")
    ] = Path(DEFAULT_ROOT),
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 for any that is free.")
    ] = 8501,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name that browsers may call the app by."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")] = True,
    as_json: AsJson = False,
) -> int:
    """Look at runs and trajectories in a browser, until Ctrl-C. Nothing is sent anywhere and no run is changed.

    \b
      operant app
      operant app runs/grpo_blotto/20260101-120000 --port 0 --no-browser
    """
    from operant.app import server

    server.check_packages()
    if not runs.exists():
        raise UsageError(
            "there is no such folder or file", place=str(runs), remedy="operant app RUNS, or train a run first"
        )
    allowed = server.access(allow_host or ())
    listening = server.listen(port)
    if as_json:
        document({"url": listening.url, "runs": str(runs), "exit": EXIT_DONE})
        sys.stdout.flush()
    else:
        say(f"{runs} at {listening.url}; Ctrl-C ends it")
    server.serve(listening, runs, allowed, browser)
    return EXIT_DONE
