"""`operant play` and `operant hackmatrix`: the grid hacking game for people and for other programs."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.files import new_file, write_new
from operant.cli.options import AsJson
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.envs.hackmatrix.viewer.replay import Replay

GAMES = ("hackmatrix",)

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["--help", "-h"]})


def play(
    game: Annotated[
        str, typer.Argument(metavar="GAME", help="`hackmatrix`, the grid hacking game.", show_default=False)
    ],
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", min=0, help="Which game; one by chance by default.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Write the game to a new file when it ends.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Play a game yourself: with keys in a terminal, or with one action a line from a pipe.

    \b
      operant play hackmatrix
      operant play hackmatrix --seed 7 --replay mine.json
      printf 'up\\nleft\\nsiphon\\n' | operant play hackmatrix --seed 7
    """
    import random

    from operant.envs.hackmatrix.faces.play import SEEDS, is_interactive, play_in_pipe, play_in_terminal
    from operant.envs.hackmatrix.viewer.replay import dump_replays, summary

    _refuse_other(game)
    if replay is not None:
        new_file(replay)
    chosen = random.randrange(SEEDS) if seed is None else seed
    if is_interactive():
        played = play_in_terminal(chosen)
    else:
        played = play_in_pipe(chosen, sys.stdin, sys.stderr if as_json else sys.stdout)
    if replay is not None:
        write_new(replay, dump_replays([played]), f"operant play {game}")
    if as_json:
        document(summary(played) | {"actions": played.actions, "exit": EXIT_DONE})
    else:
        say(_line(played))
        aside(_hint(played, replay))
    return EXIT_DONE


@app.callback()
def _hackmatrix() -> None:
    """The grid hacking game for other programs, and its replays. To play it yourself: operant play hackmatrix."""


@app.command("serve", short_help="Play for another program, by JSON lines on standard input and output.")
def serve(
    info: Annotated[bool, typer.Option("--info", help="Log refused requests to standard error.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log every line to standard error.")] = False,
    headless: Annotated[bool, typer.Option("--headless-cli", hidden=True)] = False,
) -> int:
    """Play for another program: one JSON object a line on standard input, one reply line on standard output.

    \b
      echo '{"action": "reset", "seed": 7}' | operant hackmatrix serve
    """
    import logging

    from operant.envs.hackmatrix.faces.json_lines import serve as answer

    level = logging.DEBUG if debug else logging.INFO if info else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(message)s")
    answer(sys.stdin.buffer, sys.stdout.buffer)
    return EXIT_DONE


@app.command("replay", short_help="Show a stored game in the terminal, or write it as a video or a page.")
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A replay: seeds and actions.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a .gif, an .mp4 or an .html page instead.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show a stored game: play its actions again, in the terminal, as a video, or as one page of HTML.

    \b
      operant hackmatrix replay mine.json
      operant hackmatrix replay mine.json --out mine.html
    """
    from operant.envs.hackmatrix.viewer.replay import read_replays, summary
    from operant.envs.hackmatrix.viewer.show import show

    replays = read_replays(file)
    if out is not None or not as_json:
        show(replays, None if out is None else new_file(out))
    if as_json:
        document({"episodes": [summary(one) for one in replays], "file": out, "exit": EXIT_DONE})
    elif out is not None:
        say(f"{plural(len(replays), 'episode')} written to {out}")
    return EXIT_DONE


def _refuse_other(game: str) -> None:
    if game not in GAMES:
        near = get_close_matches(game, GAMES, n=1)
        raise UsageError(f"there is no game {game!r} to play", remedy=f"operant play {near[0] if near else GAMES[0]}")


def _line(played: Replay) -> str:
    from operant.envs.hackmatrix.viewer.replay import summary

    end = summary(played)
    how = end["ended"] or "unfinished"
    return (
        f"seed {end['seed']}: {how} in stage {end['stage']} after {plural(end['steps'], 'action')}, "
        f"score {end['score']}, reward {end['reward']:.2f}"
    )


def _hint(played: Replay, kept: Path | None) -> str:
    """What to do with the game that was just played."""
    if kept is not None:
        return f"to see it: operant hackmatrix replay {kept}"
    return f"the same game: operant play hackmatrix --seed {played.seed}"
