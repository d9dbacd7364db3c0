"""Random states that play rarely reaches: rich players, crowded and full boards, several enemies on a cell."""

from __future__ import annotations

from random import Random

from operant.envs.hackmatrix.constants import (
    CELLS,
    ENEMIES,
    MAX_ENEMIES,
    PROGRAM_COUNT,
    STAGES,
    STEP_LIMIT,
)
from operant.envs.hackmatrix.reference.board import NEIGHBOURS
from operant.envs.hackmatrix.reference.state import Block, Cell, Enemy, Player, State, Transmission

CORNERS = (0, 5, 30, 35)


def random_state(rng: Random) -> State:
    """Any state that the rules know what to do with."""
    exit_at = rng.choice(CORNERS)
    near = rng.random() < 0.2
    state = State(
        player=_player(rng, rng.choice(NEIGHBOURS[exit_at]) if near else rng.randrange(CELLS)),
        stage=rng.choice((rng.randint(1, STAGES), STAGES)),
        turn=rng.randint(0, 14),
        owned=[program for program in range(PROGRAM_COUNT) if rng.random() < rng.choice((0.3, 1.0))],
        cells=[_cell(rng, rng.choice((0.1, 0.3))) for _ in range(CELLS)],
        exit=exit_at,
        show=rng.random() < 0.3,
        calm=rng.random() < 0.2,
        skip=rng.random() < 0.1,
        attack_uses=rng.randint(0, 2),
        interval=rng.randint(4, 12),
        next_task=rng.randint(1, 20),
        pending=rng.choice((0, 0, 0, 2, 9, 36, 50)),
    )
    state.cells[exit_at] = Cell("exit", *state.cells[exit_at][1:])
    state.enemies = [_enemy(rng) for _ in range(_crowd(rng, MAX_ENEMIES))]
    free = rng.sample(range(CELLS), _crowd(rng, CELLS))
    state.transmissions = [_transmission(rng, at) for at in free]
    return state


def random_steps(rng: Random) -> int:
    """Steps already made, now and then so many that time is about to run out."""
    return rng.choice((0, 0, STEP_LIMIT - 3))


def _crowd(rng: Random, most: int) -> int:
    return rng.choice((0, rng.randint(1, 4), rng.randint(1, 12), rng.randint(0, most), most))


def _player(rng: Random, at: int) -> Player:
    wealth = rng.choice((3, 20, 60))
    return Player(
        at=at,
        hp=rng.randint(1, 3),
        credits=rng.randint(0, wealth),
        energy=rng.randint(0, wealth),
        siphons=rng.randint(0, 4),
        score=rng.randint(0, 20),
        attack=rng.choice((1, 1, 2, 3)),
    )


def _cell(rng: Random, walls: float) -> Cell:
    content = _block(rng) if rng.random() < walls else "pickup" if rng.random() < 0.1 else "empty"
    amount = rng.randint(1, 3) if rng.random() < 0.7 else 0
    credit, energy = (amount, 0) if rng.random() < 0.5 else (0, amount)
    return Cell(content, credit, energy, siphoned=rng.random() < 0.15, centre=rng.random() < 0.05)


def _block(rng: Random) -> Block:
    question = rng.random() < 0.2
    if rng.random() < 0.5:
        return Block(0, rng.randrange(PROGRAM_COUNT), rng.randint(0, 8), question)
    return Block(rng.randint(1, 9), None, rng.randint(0, 9), question)


def _enemy(rng: Random) -> Enemy:
    kind, at = rng.randrange(len(ENEMIES)), rng.randrange(CELLS)
    flags = (rng.random() < 0.2 for _ in range(3))
    stunned, from_siphon, from_task = flags
    return Enemy(kind, at, rng.randint(1, 3), 0, stunned, from_siphon, from_task, rng.randrange(CELLS))


def _transmission(rng: Random, at: int) -> Transmission:
    return Transmission(at, rng.randint(1, 6), rng.randrange(len(ENEMIES)), rng.random() < 0.3, rng.random() < 0.3)
