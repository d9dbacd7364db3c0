"""PUSH and PULL, which move every enemy by a cell and heed almost nothing in its way."""

from __future__ import annotations

from operant.envs.hackmatrix.reference.board import manhattan, number, on_board, place
from operant.envs.hackmatrix.reference.deeds import Deed
from operant.envs.hackmatrix.reference.state import State


def shove(state: State, *, away: bool) -> Deed:
    """Move every enemy away from the player or towards it, unless an earlier one has gone to its target."""
    player = state.player.at
    targets = [_target(enemy.at, player, away) for enemy in state.enemies]
    taken: set[int] = set()
    for enemy, target in zip(state.enemies, targets, strict=True):
        if target is not None and target not in taken:
            enemy.at = target
            taken.add(target)
    return Deed()


def _target(at: int, player: int, away: bool) -> int | None:
    """The candidate farthest from the player, or nearest to it; the first on ties, None without candidates."""
    cells = _candidates(at, player, away)
    if away:
        return max(cells, key=lambda cell: manhattan(cell, player), default=None)
    return min((c for c in cells if c != player), key=lambda cell: manhattan(cell, player), default=None)


def _candidates(at: int, player: int, away: bool) -> list[int]:
    (row, col), (player_row, player_col) = place(at), place(player)
    towards = 1 if away else -1
    dr, dc = towards * _sign(row - player_row), towards * _sign(col - player_col)
    cells = [(row + dr, col + dc)]
    if dr:
        cells.append((row + dr, col))
    if dc:
        cells.append((row, col + dc))
    return [number(*cell) for cell in cells if on_board(*cell)]


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)
