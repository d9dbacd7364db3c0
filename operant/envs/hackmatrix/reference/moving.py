"""The four directions: shoot what is in the line of fire, else walk."""

from __future__ import annotations

from operant.envs.hackmatrix.reference.board import BESIDE, RAYS
from operant.envs.hackmatrix.reference.deeds import Deed, hit, pays
from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission


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
