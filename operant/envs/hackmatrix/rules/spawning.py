"""Where a transmission appears: best out of the player's line of fire, else on any free cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import ENEMIES, SIZE
from operant.envs.hackmatrix.rules.bits import MOVES, Board, any_of, bit, choose, count, full, is_empty, nth, only
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.lists import Transmissions, read_transmissions, write_transmissions


class Room(NamedTuple):
    """The free cells, and those that the player could hit from where they stand."""

    free: Board
    exposed: Board


def room(at: Array, shields: Board, transmissions: Board) -> Room:
    """The room on a board; `shields` are the cells of blocks and enemies."""
    free = full() - (shields | transmissions | bit(at))
    return Room(free, line_of_fire(at, shields))


def line_of_fire(at: Array, shields: Board) -> Board:
    """The cells in the player's row and column up to and with the first shield in each direction."""
    return any_of([_ray(bit(at), move, shields) for move in MOVES])


def _ray(here: Board, move: Callable[[Board], Board], shields: Board) -> Board:
    ray = edge = move(here)
    for _ in range(SIZE - 2):
        edge = move(edge - shields)
        ray = ray | edge
    return ray


def spawn(
    source: Source, address: Array, wanted: Array, left: Room, origin: tuple[bool | Array, bool | Array]
) -> tuple[Array, Room]:
    """One transmission at an address, as a word (0 if there is none), and the room that is left.

    `origin` are the from-siphon and from-task flags.
    """
    hidden = left.free - left.exposed
    candidates = choose(is_empty(hidden), left.free, hidden)
    number = count(candidates)
    alive = wanted & (number > 0)
    square = nth(candidates, source.pick(address, number))
    kind = source.pick(address + 1, len(ENEMIES))
    from_siphon, from_task = (jnp.broadcast_to(flag, alive.shape) for flag in origin)
    word = settled(write_transmissions(Transmissions(alive, kind, square, jnp.ones_like(kind), from_siphon, from_task)))
    taken = only(word != 0, bit(read_transmissions(word).at))
    return word, Room(left.free - taken, left.exposed)
