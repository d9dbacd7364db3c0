"""The enemies' turn: hatching, attacks and moves, the scheduled task; and where transmissions appear."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import (
    AT_ORDER,
    AT_SIPHON_SPAWN,
    AT_TASK,
    CELLS,
    CRYPTOG,
    ENEMIES,
    GLITCH,
    MAX_ENEMIES,
    MAX_PENDING,
    MAX_TRANSMISSIONS,
)
from operant.envs.hackmatrix.reference.board import BOARD, NEIGHBOURS, RAYS, first_step, in_line, manhattan
from operant.envs.hackmatrix.reference.draws import Source
from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission


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


SUB_STEPS = 2


def enemy_turn(state: State, source: Source) -> bool:
    """Let the enemies act; whether they did, since STEP makes them miss the whole turn."""
    if state.skip:
        state.skip = False
        return False
    state.turn += 1
    _hatch(state)
    _act(state, source)
    _run_task(state, source)
    _answer_siphons(state, source)
    for enemy in state.enemies:
        enemy.disabled = max(enemy.disabled - 1, 0)
        enemy.stunned = False
    state.remember()
    return True


def _hatch(state: State) -> None:
    """Transmissions whose time has come turn into enemies; the others come a turn nearer."""
    due = [one for one in state.transmissions if one.turns <= 1]
    state.transmissions = [one for one in state.transmissions if one.turns > 1]
    for one in state.transmissions:
        one.turns -= 1
    room = MAX_ENEMIES - len(state.enemies)
    state.enemies.extend(_hatched(one) for one in due[:room])


def _hatched(one: Transmission) -> Enemy:
    return Enemy(
        kind=one.kind,
        at=one.at,
        hp=ENEMIES[one.kind].max_hp,
        disabled=1,
        from_siphon=one.from_siphon,
        from_task=one.from_task,
        seen_at=one.at,
    )


def _act(state: State, source: Source) -> None:
    """Two sub-steps, in each of which the enemies that can still act do so in a fresh random order."""
    walls = state.walls()
    finished: set[int] = set()
    for sub_step in range(SUB_STEPS):
        for i in _order(state, source, sub_step, finished):
            if state.player.at in NEIGHBOURS[state.enemies[i].at]:
                state.player.hp = max(state.player.hp - 1, 0)
                finished.add(i)
            else:
                _move(state, state.enemies[i], walls)


def _order(state: State, source: Source, sub_step: int, finished: set[int]) -> list[int]:
    """List positions of the enemies that act in this sub-step, in order; the others need no place in it."""
    acting = [
        i
        for i, enemy in enumerate(state.enemies)
        if not enemy.disabled and not enemy.stunned and i not in finished and sub_step < ENEMIES[enemy.kind].moves
    ]
    if len(acting) < 2:
        return acting
    return sorted(acting, key=lambda i: (source.u32(AT_ORDER + CELLS * sub_step + i), i))


def _move(state: State, enemy: Enemy, walls: set[int]) -> None:
    target = _next_cell(state, enemy, walls)
    if target is None:
        return
    enemy.at = target
    if enemy.kind == CRYPTOG and in_line(target, state.player.at):
        enemy.seen_at = target


def _next_cell(state: State, enemy: Enemy, walls: set[int]) -> int | None:
    """Where an enemy goes that is not adjacent to the player; None if it stays."""
    player = state.player.at
    closed = set() if enemy.kind == GLITCH else walls
    occupied = {other.at for other in state.enemies if other is not enemy} | {one.at for one in state.transmissions}
    step = first_step(enemy.at, player, closed | occupied - {player})
    if step is not None:
        return step
    step = first_step(enemy.at, player, closed)
    if step is not None and step not in occupied:
        return step
    open_cells = [cell for cell in NEIGHBOURS[enemy.at] if cell not in closed and cell not in occupied]
    return min(open_cells, key=lambda cell: manhattan(cell, player), default=None)


def _run_task(state: State, source: Source) -> None:
    if not state.calm and state.turn >= state.next_task:
        spawn(state, source, AT_TASK, from_task=True)
        state.next_task = state.turn + state.interval


def _answer_siphons(state: State, source: Source) -> None:
    for j in range(min(state.pending, MAX_PENDING)):
        spawn(state, source, AT_SIPHON_SPAWN + 2 * j, from_siphon=True)
    state.pending = 0
