"""`operant report`: a run as one HTML file."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from operant.cli.files import new_file
from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import document, say, size
from operant.errors import EXIT_DONE


def report(
    run: RunName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The new HTML file.")] = Path("report.html"),
    video: Annotated[
        bool, typer.Option("--video/--no-video", help="Let the best policy play where no video is kept.")
    ] = True,
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="Episodes to play for it.")] = 1,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Write a run as one self-contained HTML file that opens offline and can be sent around.

    Score with interval, curves, the agent at play (video, board replay or transcript), alerts, seeds, provenance, spec.

    \b
      operant report ppo_cartpole -o cartpole.html
      operant report grpo_blotto --no-video
    """
    from operant.api.page import write_report
    from operant.cli.opening import open_place
    from operant.run.layout import shown

    place = open_place(run, root)
    new_file(out)
    # What an engine prints is for people; the answer stays alone on standard output.
    with redirect_stdout(sys.stderr):
        file = write_report(place, out, video=video, episodes=episodes)
    if as_json:
        document({"file": shown(file), "bytes": file.stat().st_size, "exit": EXIT_DONE})
    else:
        say(f"{shown(file)}  ({size(file.stat().st_size)}, opens in any browser)")
    return EXIT_DONE
