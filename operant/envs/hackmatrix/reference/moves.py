"""What an action of the player did; the four directions, which shoot or walk; PUSH and PULL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from operant.envs.hackmatrix.reference.board import BESIDE, RAYS, manhattan, number, on_board, place
from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that was carried out; one that was refused is None instead.

    `missed` are the credits and energy that a better place to siphon from would have given.
    """

    ends_turn: bool = False
    kills: int = 0
    picked_up: bool = False
    reached_exit: bool = False
    wasted: bool = False
    missed: tuple[int, int] = (0, 0)


def pays(target: Enemy | Transmission) -> bool:
    """Whether destroying this counts as a kill: whatever a scheduled task sent does not."""
    return not target.from_task


def hit(state: State, targets: Iterable[Enemy], damage: int) -> int:
    """Take HP from every target; survivors are stunned, the dead removed. The number of kills."""
    for enemy in targets:
        enemy.hp -= damage
        enemy.stunned = True
    return bury(state)


def bury(state: State) -> int:
    """Remove every enemy without HP; the number of kills among them."""
    kills = sum(enemy.hp <= 0 and pays(enemy) for enemy in state.enemies)
    state.enemies = [enemy for enemy in state.enemies if enemy.hp > 0]
    return kills


def move(state: State, direction: int) -> Deed | None:
    """Hit the first target in this direction; without one, walk; None when there is no way."""
    target = find_target(state, direction)
    if isinstance(target, Transmission):
        state.transmissions.remove(target)
        return Deed(ends_turn=True, kills=int(pays(target)))
    if isinstance(target, Enemy):
        return Deed(ends_turn=True, kills=hit(state, [target], state.player.attack))
    return _walk(state, direction)


def find_target(state: State, direction: int) -> Enemy | Transmission | None:
    """What an attack in this direction meets first: in one cell a transmission comes before an enemy."""
    for cell in RAYS[state.player.at][direction]:
        there = state.transmissions_at(cell) or state.enemies_at(cell)
        if there:
            return there[0]
        if state.cells[cell].block:
            return None
    return None


def _walk(state: State, direction: int) -> Deed | None:
    ahead = BESIDE[state.player.at][direction]
    if ahead is None or state.cells[ahead].block:
        return None
    state.player.at = ahead
    cell = state.cells[ahead]
    if cell.content == "pickup":
        state.player.siphons += 1
        state.cells[ahead] = cell._replace(content="empty")
    return Deed(ends_turn=True, picked_up=cell.content == "pickup", reached_exit=cell.content == "exit")


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
