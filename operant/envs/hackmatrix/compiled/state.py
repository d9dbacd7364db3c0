"""The state of a game: named fields while a step is under way, two arrays of words between steps.

Few large arrays are cheaper to carry, select and copy than many small ones, and a snapshot for UNDO
is then a prefix of the words.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.compiled.bits import Board
from operant.envs.hackmatrix.compiled.draws import Source
from operant.envs.hackmatrix.compiled.lists import ENEMY_ORIGIN, SIGNAL_ORIGIN, SLOTS
from operant.envs.hackmatrix.constants import CELLS, FIRST_INTERVAL, MAX_HISTORY, START_ATTACK, START_HP


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


def empty_game(like: Array) -> Game:
    """Stage 1 on a board with nothing on it, for every environment of `like`."""
    number = jnp.zeros(like.shape, jnp.int32)
    off = jnp.zeros(like.shape, bool)
    word = jnp.zeros(like.shape, jnp.uint32)
    nothing = jnp.zeros((SLOTS, *like.shape), jnp.uint32)
    board = Board(word, word)
    scene = Scene(
        at=number,
        hp=number + START_HP,
        credits=number,
        energy=number,
        siphons=number,
        score=number,
        attack=number + START_ATTACK,
        turn=number,
        owned=word,
        show=off,
        calm=off,
        attack_uses=number,
        gate=number,
        blocks=board,
        siphoned=board,
        centres=board,
        pickups=board,
        cells=nothing,
        enemies=nothing,
        transmissions=nothing,
    )
    interval = number + FIRST_INTERVAL
    source = Source(word, word, word)
    return Game(scene, number + 1, number, off, interval, interval, number, number, number, number, source)


_SINGLE = jax.eval_shape(empty_game, jax.ShapeDtypeStruct((), jnp.int32))
_SHAPES, _GAME = jax.tree.flatten(_SINGLE)
_SIZES = [leaf.size for leaf in _SHAPES]
GAME_WORDS = sum(_SIZES)
SCENE_WORDS = sum(leaf.size for leaf in jax.tree.leaves(_SINGLE.scene))


def pack(game: Game | Scene) -> Array:
    """The words of a game along the first axis; those of its scene come first."""
    leaves = [jnp.asarray(leaf).astype(jnp.uint32) for leaf in jax.tree.leaves(game)]
    batch = leaves[0].ndim
    return jnp.concatenate([leaf if leaf.ndim > batch else leaf[None] for leaf in leaves])


def unpack(words: Array) -> Game:
    """The game whose words these are."""
    return jax.tree.unflatten(_GAME, _leaves(words, len(_SHAPES)))


def unpack_scene(words: Array) -> Scene:
    """The scene whose words these are."""
    structure = jax.tree.structure(_SINGLE.scene)
    return jax.tree.unflatten(structure, _leaves(words, structure.num_leaves))


def _leaves(words: Array, number: int) -> list[Array]:
    leaves: list[Array] = []
    start = 0
    for shape, size in list(zip(_SHAPES, _SIZES, strict=True))[:number]:
        part = words[start : start + size] if shape.shape else words[start]
        leaves.append(part != 0 if shape.dtype == bool else part.astype(shape.dtype))
        start += size
    return leaves


def snapshot(scene: Scene) -> Array:
    """What the history keeps of a scene: all of it, but not where enemies and transmissions came from."""
    enemies = scene.enemies & jnp.uint32(~ENEMY_ORIGIN & 0xFFFFFFFF)
    signals = scene.transmissions & jnp.uint32(~SIGNAL_ORIGIN & 0xFFFFFFFF)
    return pack(scene._replace(enemies=enemies, transmissions=signals))


def pick_scene(condition: Array, yes: Scene, no: Scene) -> Scene:
    """One of two scenes, by environment."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


HISTORY_SHAPE = (MAX_HISTORY, SCENE_WORDS)
assert CELLS == SLOTS
