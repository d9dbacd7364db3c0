"""The state of a game: named fields while a step is under way, two arrays of words between steps.

Few large arrays are cheaper to carry, select and copy than many small ones, and a snapshot for UNDO
is then a prefix of the words.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.envs.hackmatrix.constants import CELLS, FIRST_INTERVAL, MAX_HISTORY, START_ATTACK, START_HP
from operant.envs.hackmatrix.rules.bits import Board
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import column
from operant.envs.hackmatrix.rules.lists import ENEMY_ORIGIN, SIGNAL_ORIGIN, SLOTS, field, flag, shifted

NOTES_ROW, CREDITS_ROW, ENERGY_ROW, SIPHONS_ROW, SCORE_ROW, ATTACK_ROW = range(6)  # of a game's words
OWNED_ROW = 7
LISTS_START = 16  # of a scene's words: before them notes, seven numbers and four boards
SCENE_WORDS = LISTS_START + 3 * SLOTS
GAME_WORDS = SCENE_WORDS + 7
SOURCE_ROWS = range(GAME_WORDS - 3, GAME_WORDS)
HISTORY_SHAPE = (MAX_HISTORY, SCENE_WORDS)
assert CELLS == SLOTS


class Scene(NamedTuple):
    """What UNDO brings back. Places are squares; `gate` is the cell whose content is the exit."""

    at: Array
    hp: Array
    credits: Array
    energy: Array
    siphons: Array
    score: Array
    attack: Array
    turn: Array
    owned: Array  # a bit a program
    show: Array
    calm: Array
    attack_uses: Array
    gate: Array
    blocks: Board
    siphoned: Board
    centres: Board
    pickups: Board
    cells: Array
    enemies: Array
    transmissions: Array


class Game(NamedTuple):
    """A whole game but for its history. `exit` is the exit position, `skip` the STEP flag.

    `saved` snapshots are in the history, the newest in row `newest`.
    """

    scene: Scene
    stage: Array
    exit: Array
    skip: Array
    interval: Array
    next_task: Array
    pending: Array
    saved: Array
    newest: Array
    steps: Array
    source: Source


class State(NamedTuple):
    """A game between steps: its words, and the ring of snapshots. Rows beyond `saved` mean nothing."""

    words: Array  # uint32 [GAME_WORDS]
    history: Array  # uint32 [8, SCENE_WORDS]


def pack_scene(scene: Scene) -> Array:
    """The words of a scene along the first axis."""
    notes = (
        shifted(scene.at, 0)
        | shifted(scene.hp, 6)
        | shifted(scene.attack_uses, 8)
        | shifted(scene.show, 10)
        | shifted(scene.calm, 11)
        | shifted(scene.gate, 12)
    )
    numbers = (scene.credits, scene.energy, scene.siphons, scene.score, scene.attack, scene.turn, scene.owned)
    boards = (*scene.blocks, *scene.siphoned, *scene.centres, *scene.pickups)
    rows = [row.astype(jnp.uint32)[None] for row in (notes, *numbers, *boards)]
    return jnp.concatenate([*rows, scene.cells, scene.enemies, scene.transmissions])


def unpack_scene(words: Array) -> Scene:
    """The scene whose words these are."""
    notes = words[0]
    numbers = (row.astype(jnp.int32) for row in words[1:7])
    credit, energy, siphons, score, attack, turn = numbers
    boards = words[8:LISTS_START]
    cells, enemies, transmissions = (words[LISTS_START + SLOTS * i : LISTS_START + SLOTS * (i + 1)] for i in range(3))
    return Scene(
        at=field(notes, 0, 6),
        hp=field(notes, 6, 2),
        credits=credit,
        energy=energy,
        siphons=siphons,
        score=score,
        attack=attack,
        turn=turn,
        owned=words[7],
        show=flag(notes, 10),
        calm=flag(notes, 11),
        attack_uses=field(notes, 8, 2),
        gate=field(notes, 12, 6),
        blocks=Board(boards[0], boards[1]),
        siphoned=Board(boards[2], boards[3]),
        centres=Board(boards[4], boards[5]),
        pickups=Board(boards[6], boards[7]),
        cells=cells,
        enemies=enemies,
        transmissions=transmissions,
    )


def pack(game: Game) -> Array:
    """The words of a game along the first axis; those of its scene come first."""
    notes = (
        shifted(game.stage, 0)
        | shifted(game.exit, 4)
        | shifted(game.skip, 10)
        | shifted(game.interval, 11)
        | shifted(game.saved, 19)
        | shifted(game.newest, 23)
    )
    numbers = (notes, game.next_task, game.pending, game.steps, *game.source)
    return jnp.concatenate([pack_scene(game.scene), *(row.astype(jnp.uint32)[None] for row in numbers)])


def unpack(words: Array) -> Game:
    """The game whose words these are."""
    notes, next_task, pending, steps, *source = words[SCENE_WORDS:]
    return Game(
        scene=unpack_scene(words[:SCENE_WORDS]),
        stage=field(notes, 0, 4),
        exit=field(notes, 4, 6),
        skip=flag(notes, 10),
        interval=field(notes, 11, 8),
        next_task=next_task.astype(jnp.int32),
        pending=pending.astype(jnp.int32),
        saved=field(notes, 19, 4),
        newest=field(notes, 23, 3),
        steps=steps.astype(jnp.int32),
        source=Source(*source),
    )


def snapshot(words: Array) -> Array:
    """What the history keeps of a game's words: its scene, but not where enemies and transmissions came from."""
    enemies, signals = LISTS_START + SLOTS, LISTS_START + 2 * SLOTS
    index = column(range(SCENE_WORDS), words[0])
    forgotten = jnp.where(index >= signals, SIGNAL_ORIGIN, jnp.where(index >= enemies, ENEMY_ORIGIN, 0))
    return words[:SCENE_WORDS] & ~forgotten.astype(jnp.uint32)


def blank_words() -> np.ndarray:
    """A game in stage 1 with nothing on the board and no key."""
    words = np.zeros(GAME_WORDS, np.uint32)
    words[NOTES_ROW], words[ATTACK_ROW] = START_HP << 6, START_ATTACK
    words[SCENE_WORDS] = 1 | FIRST_INTERVAL << 11
    return words
