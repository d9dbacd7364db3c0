"""Shows replays in the terminal, as a video or as a page; games of a policy with its probabilities and values."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.faces.render import board, paint, status
from operant.envs.hackmatrix.viewer.replay import Frame, Replay, frames
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.envs.watch import Decision

PAUSE_SECONDS, END_SECONDS = 0.25, 2.0
SUFFIXES = (".gif", ".mp4", ".html")


def show(replays: list[Replay], sink: Path | TextIO | None = None, *, pause: float = PAUSE_SECONDS) -> None:
    """Write a video (.gif, .mp4) or a page (.html), or print every frame to a stream, by default the terminal."""
    if not isinstance(sink, Path):
        _print(replays, sink or sys.stdout, pause)
    elif sink.suffix == ".html":
        from operant.envs.hackmatrix.viewer.page import page

        sink.write_text(page(replays), encoding="utf-8")
    elif sink.suffix in SUFFIXES:
        from operant.envs.hackmatrix.viewer.video import write_video

        write_video(list(captioned(replays)), sink)
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
            *status(frame.obs, colour),
            *board(frame.obs, colour, compact=True),
            *policy_lines(frame, colour),
        ]
        text = "".join(f"{line}\x1b[K\n" if live else f"{line}\n" for line in lines)
        print(f"\x1b[H\x1b[2J{text}" if live else text, file=sink, flush=True)
        if live:
            time.sleep(END_SECONDS if frame.action is None else pause)


def policy_lines(frame: Frame, colour: bool) -> list[str]:
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


def show_games(games: Sequence[tuple[int, Sequence[Decision]]], sink: str | Path) -> None:
    """Show games, each a seed and the decisions taken: in the terminal, as a video or as a page."""
    if isinstance(sink, Path):
        sink.parent.mkdir(parents=True, exist_ok=True)
    show([replay_of(*game) for game in games], sink if isinstance(sink, Path) else None)


def replay_of(seed: int, decisions: Sequence[Decision]) -> Replay:
    """The replay of a game; the policy's outputs are in it only if it gave them at every step."""
    columns = {
        "probabilities": [each.probabilities for each in decisions],
        "values": [each.value for each in decisions],
    }
    given = {name: rows for name, rows in columns.items() if all(row is not None for row in rows)}
    return Replay.of(seed, [each.action[0] for each in decisions], **given)
