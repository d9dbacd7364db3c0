"""`operant card`: the model card of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.files import new_file, write_new
from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import document, say
from operant.errors import EXIT_DONE


def card(
    run: RunName,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write it to a new file instead.")
    ] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Print the model card that `operant push hf://...` writes: score with interval, how to load it, spec.

    \b
      operant card ppo_cartpole
      operant card ppo_cartpole -o README.md
    """
    from operant.api.cards import card
    from operant.cli.opening import open_place

    if out is not None:
        new_file(out)
    text = card(open_place(run, root))
    if out is not None:
        write_new(out, text, f"operant card {run}")
    if as_json:
        document({"card": text, "file": None if out is None else str(out), "exit": EXIT_DONE})
    else:
        say(text.rstrip() if out is None else str(out))
    return EXIT_DONE
