"""Shows replays: in the terminal, as a film, or as a page."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.render import board, paint, status
from operant.envs.hackmatrix.replay import Frame, Replay, frames
from operant.errors import UsageError

PAUSE_SECONDS, END_SECONDS = 0.25, 2.0
SUFFIXES = (".gif", ".mp4", ".html")


def show(replays: list[Replay], sink: Path | TextIO | None = None, *, pause: float = PAUSE_SECONDS) -> None:
    """Write a film (.gif, .mp4) or a page (.html), or print every frame to a stream, by default the terminal."""
    if not isinstance(sink, Path):
        _print(replays, sink or sys.stdout, pause)
    elif sink.suffix == ".html":
        from operant.envs.hackmatrix.page import page

        sink.write_text(page(replays), encoding="utf-8")
    elif sink.suffix in SUFFIXES:
        from operant.envs.hackmatrix.film import write_film

        write_film(list(captioned(replays)), sink)
    else:
        raise UsageError(
            f"a replay cannot be written as {sink.suffix or 'a file without a suffix'}",
            place=str(sink),
            remedy=f"a name that ends in {' or '.join(SUFFIXES)}",
        )


def _print(replays: list[Replay], sink: TextIO, pause: float) -> None:
    """All frames one below the other; in a terminal one over the other, each for a moment."""
    live = sink.isatty()
    colour = live and not os.environ.get("NO_COLOR")
    for frame, caption in captioned(replays):
        lines = [
            caption,
            *status(frame.seen, colour),
            *board(frame.seen, colour, compact=True),
            *thoughts(frame, colour),
        ]
        text = "".join(f"{line}\x1b[K\n" if live else f"{line}\n" for line in lines)
        print(f"\x1b[H\x1b[2J{text}" if live else text, file=sink, flush=True)
        if live:
            time.sleep(END_SECONDS if frame.action is None else pause)


def thoughts(frame: Frame, colour: bool) -> list[str]:
    """What happened, what comes next, and what the policy thinks of it."""
    value = "" if frame.value is None else f"   value {frame.value:.2f}"
    coming = f"next: {ACTION_NAMES[frame.action]}{value}" if frame.action is not None else frame.over
    bars = [_bar(action, chance) for action, chance in frame.likeliest(5)]
    total = f"reward {frame.reward:+.2f}   total {frame.total:+.2f}"
    return [paint(coming, "bold", colour), *bars, total, *frame.events]


def _bar(action: int, chance: float) -> str:
    return f"{ACTION_NAMES[action]:>8} {'#' * round(30 * chance):<30} {100 * chance:5.1f} %"


def captioned(replays: list[Replay]) -> Iterator[tuple[Frame, str]]:
    """Every frame with the words above it."""
    for replay in replays:
        for k, frame in enumerate(frames(replay)):
            yield frame, f"seed {replay.seed}   step {k} of {len(replay.actions)}"
