"""A new game, and the board of a new stage."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import (
    AMOUNTS,
    AT_ATTEMPT,
    AT_BLOCKS,
    AT_BONUS,
    AT_CONTENT,
    AT_CORNER,
    AT_EXIT,
    AT_RESOURCE,
    AT_STAGE_SPAWN,
    BLOCK_ATTEMPTS,
    BONUS_CREDITS,
    BONUS_ENERGY,
    BONUS_SIPHONS,
    CELLS,
    CORNERS,
    MAX_BLOCKS,
    MAX_POINTS,
    MIN_BLOCKS,
    PROGRAM_COUNT,
    PROGRAMS,
    QUESTION_ODDS,
    STAGE_INTERVALS,
    STAGES,
)
from operant.envs.hackmatrix.reference.board import BOARD, NEIGHBOURS, number
from operant.envs.hackmatrix.reference.draws import Source
from operant.envs.hackmatrix.reference.enemies import spawn
from operant.envs.hackmatrix.reference.state import Block, Cell, Player, State

_CORNERS = tuple(number(*corner) for corner in CORNERS)


def new_game(source: Source) -> State:
    """The player on a random corner with one bonus, and the first stage around it."""
    player = Player(_CORNERS[source.pick(AT_CORNER, len(_CORNERS))])
    bonus = source.pick(AT_BONUS, 3)
    player.credits = BONUS_CREDITS if bonus == 0 else 0
    player.energy = BONUS_ENERGY if bonus == 1 else 0
    player.siphons = BONUS_SIPHONS if bonus == 2 else 0
    state = State(player)
    begin_stage(state, source)
    return state


def complete_stage(state: State, source: Source) -> bool:
    """What reaching the exit brings; whether the whole game is won by it."""
    state.heal(1)
    if state.stage == STAGES:
        return True
    state.stage += 1
    state.interval = STAGE_INTERVALS[state.stage - 1]
    begin_stage(state, source)
    return False


def begin_stage(state: State, source: Source) -> None:
    """A fresh board. Enemies, transmissions, pending spawns, history, player and programs stay as they are."""
    state.turn, state.next_task = 0, state.interval
    state.show = state.calm = state.skip = False
    state.attack_uses = 0
    state.cells = [Cell()] * CELLS
    _place_corners(state, source)
    _place_blocks(state, source)
    _place_resources(state, source)
    for j in range(state.stage):
        spawn(state, source, AT_STAGE_SPAWN + 2 * j)


def _place_corners(state: State, source: Source) -> None:
    others = [corner for corner in _CORNERS if corner != state.player.at]
    state.exit = others[source.pick(AT_EXIT, 3)]
    for corner in others:
        state.cells[corner] = Cell("exit" if corner == state.exit else "pickup")


def _place_blocks(state: State, source: Source) -> None:
    places = _find_places(state, source)
    left = list(range(PROGRAM_COUNT))
    for b, at in enumerate(places):
        state.cells[at] = Cell(_draw_block(source, AT_CONTENT + 4 * b, left))


def _draw_block(source: Source, address: int, left: list[int]) -> Block:
    """The content of one block; a program is taken from those `left` to this stage."""
    holds_program = source.pick(address, 2) == 1
    question = source.pick(address + 1, QUESTION_ODDS) == 0
    if holds_program:
        program = left.pop(source.pick(address + 3, len(left)))
        return Block(0, program, PROGRAMS[program].spawn, question)
    points = 1 + source.pick(address + 2, MAX_POINTS)
    return Block(points, None, points, question)


def _find_places(state: State, source: Source) -> list[int]:
    """Where the blocks go: the first of a hundred attempts that is valid, or nowhere."""
    taken = {*_CORNERS, *(enemy.at for enemy in state.enemies), *(one.at for one in state.transmissions)}
    eligible = [cell for cell in BOARD if cell not in taken]
    count = min(MIN_BLOCKS + source.pick(AT_BLOCKS, MAX_BLOCKS - MIN_BLOCKS + 1), len(eligible))
    for attempt in range(BLOCK_ATTEMPTS):
        places = _shuffled(eligible, count, source, AT_ATTEMPT + 16 * attempt)
        if is_connected(set(places), state.exit) and is_siphonable(set(places)):
            return places
    return []


def _shuffled(eligible: list[int], count: int, source: Source, address: int) -> list[int]:
    """The first `count` of a partial shuffle."""
    cells = list(eligible)
    for b in range(count):
        j = b + source.pick(address + b, len(cells) - b)
        cells[b], cells[j] = cells[j], cells[b]
    return cells[:count]


def is_connected(blocks: set[int], exit_at: int) -> bool:
    """Whether every other cell is reached from (0,0) without passing through the exit, unless it lies there."""
    reached, edge = {0}, [0]
    while edge:
        for other in NEIGHBOURS[edge.pop()]:
            if other not in blocks and other not in reached:
                reached.add(other)
                if other != exit_at:
                    edge.append(other)
    return len(reached) == CELLS - len(blocks)


def is_siphonable(blocks: set[int]) -> bool:
    """Whether beside every block there is a cell that is none."""
    return all(any(other not in blocks for other in NEIGHBOURS[cell]) for cell in blocks)


def _place_resources(state: State, source: Source) -> None:
    for at, cell in enumerate(state.cells):
        if cell.content in ("empty", "pickup"):
            amount = AMOUNTS[source.pick(AT_RESOURCE + 2 * at, len(AMOUNTS))]
            is_energy = source.pick(AT_RESOURCE + 2 * at + 1, 2)
            state.cells[at] = cell._replace(energy=amount) if is_energy else cell._replace(credits=amount)
