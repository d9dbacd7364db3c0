"""What the player sees: as lists for people and JSON, and as arrays: player (10), programs (23) and grid (6, 6, 42)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from operant.envs.hackmatrix.constants import (
    CELLS,
    CH_BLOCK,
    CH_CENTRE,
    CH_CREDITS,
    CH_ENEMY,
    CH_ENEMY_HP,
    CH_ENERGY,
    CH_EXIT,
    CH_FROM_SIPHON,
    CH_PICKUP,
    CH_POINTS,
    CH_PROGRAM,
    CH_SIPHONED,
    CH_SPAWN,
    CH_STUNNED,
    CH_TRANSMISSION,
    CHANNELS,
    CRYPTOG,
    PROGRAM_COUNT,
    SIZE,
    STAGES,
)
from operant.envs.hackmatrix.reference.board import in_line, place
from operant.envs.hackmatrix.reference.state import Block, Cell, Enemy, State, Transmission


def is_hidden(state: State, enemy: Enemy) -> bool:
    """Whether this is a cryptog out of the player's row and column, while SHOW is off."""
    return enemy.kind == CRYPTOG and not state.show and not in_line(enemy.at, state.player.at)


def first_enemies(state: State) -> dict[int, Enemy]:
    """By cell, the first enemy of the list there; if it is hidden, so are the cell's others."""
    return {enemy.at: enemy for enemy in reversed(state.enemies)}


def visible_enemies(state: State) -> dict[int, Enemy]:
    """By cell, the enemy that is seen there."""
    return {at: enemy for at, enemy in first_enemies(state).items() if not is_hidden(state, enemy)}


def visible_transmissions(state: State) -> dict[int, Transmission]:
    """By cell, the first transmission of the list there."""
    return {one.at: one for one in reversed(state.transmissions)}


def hints(state: State) -> list[int]:
    """Last-known cells of the hidden cryptogs, in row-major order of where they are."""
    return [enemy.seen_at for _, enemy in sorted(first_enemies(state).items()) if is_hidden(state, enemy)]


DATA, PROGRAM, QUESTION = range(CH_BLOCK, CH_BLOCK + 3)


class Arrays(NamedTuple):
    """What a learner sees."""

    player: np.ndarray
    programs: np.ndarray
    grid: np.ndarray

    def flat(self) -> np.ndarray:
        """All of it as one vector of 1545 numbers."""
        return np.concatenate([self.player, self.programs.astype(np.float32), self.grid.ravel()])


def observe(state: State) -> Arrays:
    """The present observation. Numbers are not limited unless their rule says so."""
    programs = np.zeros(PROGRAM_COUNT, np.int32)
    programs[state.owned] = 1
    return Arrays(np.array(_player(state), np.float32), programs, _grid(state).reshape(SIZE, SIZE, CHANNELS))


def _player(state: State) -> list[float]:
    player = state.player
    row, col = place(player.at)
    return [
        row / (SIZE - 1),
        col / (SIZE - 1),
        player.hp / 3,
        min(player.credits / 50, 1),
        min(player.energy / 50, 1),
        (state.stage - 1) / (STAGES - 1),
        player.siphons / 10,
        (player.attack - 1) / 2,
        state.show,
        state.calm,
    ]


def _grid(state: State) -> np.ndarray:
    grid = np.concatenate([_channels(cell) for cell in state.cells]).reshape(CELLS, CHANNELS)
    for at, enemy in visible_enemies(state).items():
        _paint_enemy(grid[at], enemy)
    for at, one in visible_transmissions(state).items():
        grid[at, CH_TRANSMISSION] = min(one.turns / 4, 1)
    return grid


@lru_cache(maxsize=4096)  # cells never change, few are new in a step, and most are like others
def _channels(cell: Cell) -> np.ndarray:
    """The channels that depend on the cell alone; to be read only."""
    channels = np.zeros(CHANNELS, np.float32)
    if cell.block:
        _paint_block(channels, cell.block, cell.siphoned)
    if not cell.block or cell.siphoned:
        channels[CH_CREDITS] = cell.credits / 3
        channels[CH_ENERGY] = cell.energy / 3
    channels[CH_PICKUP] = cell.content == "pickup"
    channels[CH_EXIT] = cell.content == "exit"
    channels[CH_CENTRE] = cell.centre
    return channels


def _paint_block(channels: np.ndarray, block: Block, siphoned: bool) -> None:
    """A block in its colours; a question block shows that it is one, and nothing of its content."""
    channels[CH_SIPHONED] = siphoned
    if block.question:
        channels[QUESTION] = 1
        return
    channels[CH_SPAWN] = block.spawn / 9
    if block.program is None:
        channels[DATA] = 1
        channels[CH_POINTS] = block.points / 9
    else:
        channels[PROGRAM] = 1
        channels[CH_PROGRAM + block.program] = 1


def _paint_enemy(channels: np.ndarray, enemy: Enemy) -> None:
    channels[CH_ENEMY + enemy.kind] = 1
    channels[CH_ENEMY_HP] = enemy.hp / 3
    channels[CH_STUNNED] = enemy.stunned
    channels[CH_FROM_SIPHON] = enemy.from_siphon
