"""Between the compiled state and the plain one of the reference, on the host: to set a state, to show it, to compare.

The compiled form knows which programs are owned, not in which order they were acquired; they come
back in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
from jax import Array

from operant.envs.hackmatrix.constants import CELLS, DELAY_TURNS, PROGRAM_COUNT, STEP_LIMIT
from operant.envs.hackmatrix.reference.state import Block, Cell, Enemy, Player, Snapshot, Transmission
from operant.envs.hackmatrix.reference.state import State as Plain
from operant.envs.hackmatrix.rules.bits import SQUARES, WORD_SQUARES
from operant.envs.hackmatrix.rules.lists import (
    AMOUNT_LIMIT,
    ENEMY_ALIVE,
    ENEMY_FROM_SIPHON,
    ENEMY_FROM_TASK,
    ENEMY_STUNNED,
    HP_LIMIT,
    SIGNAL_ALIVE,
    SIGNAL_FROM_SIPHON,
    SIGNAL_FROM_TASK,
    SLOTS,
    TURNS_LIMIT,
)  # fmt: skip
from operant.envs.hackmatrix.rules.state import HISTORY_SHAPE, LISTS_START, SCENE_WORDS, State

_CELL_OF = {square: cell for cell, square in enumerate(SQUARES)}


def state_of(plain: Plain, key: tuple[int, int], event: int, steps: int = 0) -> State:
    """The compiled state of a plain game and its random source, in arrays of the host."""
    history = np.zeros(HISTORY_SHAPE, np.uint32)
    for row, one in enumerate(plain.history):
        history[row] = scene_words(one)
    return State(cast(Array, game_words(plain, key, event, steps)), cast(Array, history))


def game_words(plain: Plain, key: tuple[int, int], event: int, steps: int) -> np.ndarray:
    """The words of a game whose history is in rows 0, 1, .. with the newest last."""
    saved = len(plain.history)
    flags = plain.skip << 10 | plain.interval << 11
    notes = plain.stage | SQUARES[plain.exit] << 4 | flags | saved << 19 | max(saved - 1, 0) << 23
    rest = notes, plain.next_task, plain.pending, steps, *key, event
    return np.concatenate([scene_words(plain), np.array(rest, np.int64).astype(np.uint32)])


def scene_words(plain: Plain | Snapshot) -> np.ndarray:
    """The words of what UNDO brings back, which are the first of a game's."""
    player, cells = plain.player, plain.cells
    gate = next(at for at, cell in enumerate(cells) if cell.content == "exit")
    flags = plain.attack_uses << 8 | plain.show << 10 | plain.calm << 11
    words: list[int] = [
        SQUARES[player.at] | player.hp << 6 | flags | SQUARES[gate] << 12,
        *(player.credits, player.energy, player.siphons, player.score, player.attack, plain.turn),
        sum(1 << program for program in plain.owned),
        *_board_words(cells, lambda cell: cell.block is not None),
        *_board_words(cells, lambda cell: cell.siphoned),
        *_board_words(cells, lambda cell: cell.centre),
        *_board_words(cells, lambda cell: cell.content == "pickup"),
        *map(_cell_word, cells),
        *_filled(map(_enemy_word, plain.enemies)),
        *_filled(map(_transmission_word, plain.transmissions)),
    ]
    return np.array(words, np.int64).astype(np.uint32)


def _filled(words: Iterable[int]) -> list[int]:
    listed = list(words)
    return listed + [0] * (SLOTS - len(listed))


def _board_words(cells: Iterable[Cell], test: Callable[[Cell], bool]) -> tuple[int, int]:
    bits = sum(1 << SQUARES[at] for at, cell in enumerate(cells) if test(cell))
    return bits & (1 << WORD_SQUARES) - 1, bits >> WORD_SQUARES


def _cell_word(cell: Cell) -> int:
    block = cell.block or Block(0, None, 0)
    value = block.points if block.program is None else block.program
    amount = cell.credits + cell.energy
    if max(amount, value, block.spawn) > AMOUNT_LIMIT:
        raise ValueError(f"the compiled game holds amounts up to {AMOUNT_LIMIT}, not {cell}")
    flags = (cell.energy > 0) << 8 | (block.program is not None) << 9 | block.question << 10
    return amount | flags | value << 16 | block.spawn << 24


def _enemy_word(enemy: Enemy) -> int:
    if enemy.hp > HP_LIMIT:
        raise ValueError(f"the compiled game holds enemies of up to {HP_LIMIT} HP, not {enemy}")
    origin = enemy.from_siphon << ENEMY_FROM_SIPHON | enemy.from_task << ENEMY_FROM_TASK
    flags = 1 << ENEMY_ALIVE | enemy.stunned << ENEMY_STUNNED | origin
    return SQUARES[enemy.at] | SQUARES[enemy.seen_at] << 6 | enemy.kind << 12 | flags | enemy.hp << 24


def _transmission_word(one: Transmission) -> int:
    if one.turns > TURNS_LIMIT + DELAY_TURNS * STEP_LIMIT:
        raise ValueError(f"the compiled game holds transmissions of up to {TURNS_LIMIT} turns, not {one}")
    origin = one.from_siphon << SIGNAL_FROM_SIPHON | one.from_task << SIGNAL_FROM_TASK
    return SQUARES[one.at] | 1 << SIGNAL_ALIVE | origin | one.kind << 8 | one.turns << 16


def plain_of(words: Any) -> Plain:
    """The plain game of one environment's words, without its history."""
    words = np.asarray(words)
    notes, more = int(words[0]), int(words[SCENE_WORDS])
    next_task, pending = words[SCENE_WORDS + 1 : SCENE_WORDS + 3].astype(np.int32).tolist()
    credit, energy, siphons, score, attack, turn, owned = words[1:8].astype(np.int32).tolist()
    entries = words[LISTS_START:SCENE_WORDS].tolist()
    return Plain(
        player=Player(_CELL_OF[notes & 63], notes >> 6 & 3, credit, energy, siphons, score, attack),
        stage=more & 15,
        turn=turn,
        owned=[program for program in range(PROGRAM_COUNT) if owned >> program & 1],
        enemies=[_enemy(word) for word in entries[CELLS : CELLS + SLOTS] if word],
        transmissions=[_transmission(word) for word in entries[CELLS + SLOTS :] if word],
        cells=_cells(words[8:LISTS_START].tolist(), entries[:CELLS], notes >> 12 & 63),
        exit=_CELL_OF[more >> 4 & 63],
        show=bool(notes >> 10 & 1),
        calm=bool(notes >> 11 & 1),
        skip=bool(more >> 10 & 1),
        attack_uses=notes >> 8 & 3,
        interval=more >> 11 & 255,
        next_task=next_task,
        pending=pending,
    )


def _cells(boards: list[int], entries: list[int], gate: int) -> list[Cell]:
    blocks, siphoned, centres, pickups = (
        low | high << WORD_SQUARES for low, high in zip(*[iter(boards)] * 2, strict=True)
    )
    cells: list[Cell] = []
    for square, word in zip(SQUARES, entries, strict=True):
        content = "exit" if square == gate else "pickup" if pickups >> square & 1 else "empty"
        credit, energy = (0, word & 255) if word >> 8 & 1 else (word & 255, 0)
        flags = bool(siphoned >> square & 1), bool(centres >> square & 1)
        cells.append(Cell(_block(word) if blocks >> square & 1 else content, credit, energy, *flags))
    return cells


def _block(word: int) -> Block:
    value, spawn, question = word >> 16 & 255, word >> 24, bool(word >> 10 & 1)
    return Block(0, value, spawn, question) if word >> 9 & 1 else Block(value, None, spawn, question)


def _enemy(word: int) -> Enemy:
    return Enemy(
        kind=word >> 12 & 3,
        at=_CELL_OF[word & 63],
        hp=word >> 24,
        stunned=bool(word >> ENEMY_STUNNED & 1),
        from_siphon=bool(word >> ENEMY_FROM_SIPHON & 1),
        from_task=bool(word >> ENEMY_FROM_TASK & 1),
        seen_at=_CELL_OF[word >> 6 & 63],
    )


def _transmission(word: int) -> Transmission:
    origin = bool(word >> SIGNAL_FROM_SIPHON & 1), bool(word >> SIGNAL_FROM_TASK & 1)
    return Transmission(_CELL_OF[word & 63], word >> 16, word >> 8 & 3, *origin)
