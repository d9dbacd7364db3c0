"""`operant monitor`: any number of runs, live in the terminal. Nothing here changes a run."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.completers import complete_run
from operant.cli.options import DEFAULT_ROOT, AsJson, Root
from operant.cli.output import document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.report.monitor import Monitor, RunStatus

PIPE_WIDTH = 160


def monitor(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs to watch; those that run now or ended within the last hour by default.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.2, help="Time between two looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as in a pipe.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Watch any number of runs: state, frames, speed, time to go, score, curve, alerts; Ctrl-C leaves.

    It only reads files: closing it touches no run. In a pipe it prints once.

    \b
      operant monitor
      operant monitor ppo_cartpole dqn_cartpole
    """
    from operant.report.monitor import Monitor, monitor_lines
    from operant.run.layout import shown
    from operant.run.run import resolve

    chosen = [resolve(run, root).resolve() for run in runs or ()]
    below = root.resolve()
    names = [path.relative_to(below).as_posix() if below in path.parents else shown(path) for path in chosen]
    watching = Monitor(list(zip(chosen, names, strict=True)), root)
    if as_json:
        found = [{**each.as_dict(), "path": shown(each.path)} for each in watching.look()]
        document({"runs": found, "exit": EXIT_DONE})
    elif once or not sys.stdout.isatty():
        say(*monitor_lines(watching.look(), PIPE_WIDTH))
    else:
        _live(watching, interval)
    return EXIT_DONE


def _live(watching: Monitor, interval: float) -> None:
    """Redraw until Ctrl-C, which is the way out and no failure; the last view stays on the terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as view:
        try:
            while True:
                view.update(_drawn(watching.look(), console), refresh=True)
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _drawn(found: list[RunStatus], console: Any) -> Any:
    from rich.text import Text

    from operant.report.formatting import carries_unicode
    from operant.report.live import STATE_STYLES
    from operant.report.monitor import monitor_lines

    lines = monitor_lines(found, console.width, carries_unicode(sys.stdout))[: max(2, console.height - 1)]
    texts = [Text(line, no_wrap=True, overflow="crop") for line in lines]
    texts[0].stylize("bold")
    for text, status in zip(texts[1:], found, strict=False):
        text.stylize(STATE_STYLES.get(status.state, ""))
    for text in texts[1 + len(found) :]:
        text.stylize("yellow")
    return Text("\n").join(texts)
