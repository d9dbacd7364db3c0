"""Where a transmission appears: best out of the player's line of fire, else on any free cell."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import ENEMIES, MAX_TRANSMISSIONS
from operant.envs.hackmatrix.reference.board import BOARD, RAYS
from operant.envs.hackmatrix.reference.draws import Source
from operant.envs.hackmatrix.reference.state import State, Transmission


def spawn(state: State, source: Source, address: int, *, from_siphon: bool = False, from_task: bool = False) -> None:
    """Add one transmission, its cell drawn at `address` and its type at the next one; none if no cell is free."""
    cells = candidates(state)
    if not cells or len(state.transmissions) == MAX_TRANSMISSIONS:
        return
    at = cells[source.pick(address, len(cells))]
    kind = source.pick(address + 1, len(ENEMIES))
    state.transmissions.append(Transmission(at, 1, kind, from_siphon, from_task))


def candidates(state: State) -> list[int]:
    """The free cells outside the line of fire in row-major order; if there is none, all free cells."""
    walls = state.walls()
    shields = walls | {enemy.at for enemy in state.enemies}
    taken = shields | {one.at for one in state.transmissions} | {state.player.at}
    free = [cell for cell in BOARD if cell not in taken]
    exposed = line_of_fire(state.player.at, shields)
    return [cell for cell in free if cell not in exposed] or free


def line_of_fire(start: int, shields: set[int]) -> set[int]:
    """The cells in the row and column of `start` up to and with the first shield in each direction."""
    exposed: set[int] = set()
    for ray in RAYS[start]:
        for cell in ray:
            exposed.add(cell)
            if cell in shields:
                break
    return exposed
