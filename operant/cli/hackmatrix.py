"""`operant hackmatrix serve`: the grid hacking game for other programs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from operant.errors import EXIT_DONE

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["--help", "-h"]})


@app.callback()
def _hackmatrix() -> None:
    """The grid hacking game for other programs. To play it yourself: operant play hackmatrix."""


@app.command("serve", short_help="Play for another program, by JSON lines on standard input and output.")
def serve(
    info: Annotated[bool, typer.Option("--info", help="Log refused requests to standard error.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log every line to standard error.")] = False,
    headless: Annotated[bool, typer.Option("--headless-cli", help="Accepted and ignored.", hidden=True)] = False,
) -> int:
    """Play for another program: one JSON object a line on standard input, one reply line on standard output.

    \b
      echo '{"action": "reset", "seed": 7}' | operant hackmatrix serve
    """
    import logging

    from operant.envs.hackmatrix.serve import serve as answer

    level = logging.DEBUG if debug else logging.INFO if info else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(message)s")
    answer(sys.stdin.buffer, sys.stdout.buffer)
    return EXIT_DONE
