"""Games that a policy played, shown as replays with its thoughts beside the board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from operant.envs.hackmatrix.replay import GAME, Replay
from operant.envs.hackmatrix.show import show

if TYPE_CHECKING:
    from operant.envs.watching import Decision

TERMINAL = "terminal"


def is_replayed(env: str, sink: str | Path) -> bool:
    """Whether this sink is shown by replaying games, with the policy's thoughts beside the board."""
    return env == GAME and (sink == TERMINAL or isinstance(sink, Path))


def show_games(games: Sequence[tuple[int, Sequence[Decision]]], sink: str | Path) -> None:
    """Show games, each a seed and the decisions taken: in the terminal, as a film or as a page."""
    if isinstance(sink, Path):
        sink.parent.mkdir(parents=True, exist_ok=True)
    show([replay_of(*game) for game in games], sink if isinstance(sink, Path) else None)


def replay_of(seed: int, decisions: Sequence[Decision]) -> Replay:
    """The replay of a game; thoughts are in it only if the policy told them at every step."""
    columns = {
        "probabilities": [each.probabilities for each in decisions],
        "values": [each.value for each in decisions],
    }
    told = {name: rows for name, rows in columns.items() if all(row is not None for row in rows)}
    return Replay.of(seed, [each.action[0] for each in decisions], **told)
