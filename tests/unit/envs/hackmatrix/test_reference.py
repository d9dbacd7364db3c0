"""Rules of the reference that the conformance cases leave open, and what other forms rely on."""

from __future__ import annotations

import random

import numpy as np
import pytest

from operant.envs.hackmatrix.conformance.cases import read_setup
from operant.envs.hackmatrix.constants import MAX_ENEMIES, MAX_HISTORY, OBSERVATION_SIZE, REWARD_PARTS, WARP
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.reference import Game, export
from operant.envs.hackmatrix.reference.board import number
from operant.envs.hackmatrix.reference.draws import Source, Threefry
from operant.envs.hackmatrix.reference.observation import observe
from operant.envs.hackmatrix.reference.stages import is_connected, is_siphonable
from operant.envs.hackmatrix.reference.state import Block, Cell

UP, WAIT, UNDO, STEP = 0, 10, 14, 15


def put(setup: str, seed: int = 0) -> Game:
    game = Game(seed)
    game.put(read_state(read_setup(setup)))
    return game


class Constant(Source):
    """The same word at every address."""

    def __init__(self, word: int) -> None:
        self.word = word

    def u32(self, address: int) -> int:
        return self.word


@pytest.mark.parametrize("word", [0, 2**31, 2**32 - 1])
def test_any_source_can_be_injected(word: int) -> None:
    game = Game(source=Constant(word))
    assert game.source.event == 1
    for _ in range(30):
        game.step(game.legal()[-1])
    assert game.source.event == 31


def test_seeds_beyond_64_bits_wrap() -> None:
    assert Threefry(2**64 + 5).key == Threefry(5).key == (0, 5)
    assert Threefry(-1).key == (2**32 - 1, 2**32 - 1)
    assert Threefry(7 * 2**32 + 9).key == (7, 9)


def test_without_a_seed_no_two_games_are_alike() -> None:
    assert export(Game())["key"] != export(Game())["key"]


def test_an_action_that_is_none_is_an_error() -> None:
    for action in (-1, 28):
        with pytest.raises(ValueError, match=r"not in 0\.\.27"):
            Game(1).step(action)


def test_a_refused_action_changes_nothing_but_the_event_and_the_count() -> None:
    game = put("P(3,3 c1); E daemon(0,0) 3; own[14]")
    before = export(game)
    assert game.step(UNDO).refused
    changed = {key for key, value in export(game).items() if value != before[key]}
    assert changed == {"event", "steps"}


def test_undo_keeps_eight_snapshots() -> None:
    game = put("P(3,3 c20 e20); own[10,14]")
    for _ in range(12):
        game.step(WAIT)
    assert len(game.state.history) == MAX_HISTORY
    turns = []
    while game.mask()[UNDO]:
        game.step(UNDO)
        turns.append(game.state.turn)
    assert turns == [12, 11, 10, 9, 8, 7, 6, 5]


def test_a_snapshot_is_not_touched_by_what_follows() -> None:
    game = put("P(3,3 c9 e9 s1); E daemon(0,0) 3; T virus(5,5) 5; D(4,3,2); own[10,14,22]")
    game.step(WAIT)
    remembered = export(game)
    for action in (22, 4, 0, 1):
        game.step(action)
    game.step(UNDO)
    game.step(UNDO)
    game.step(UNDO)
    game.step(UNDO)
    now = export(game)
    for key in ("player", "turn", "owned", "enemies", "transmissions", "cells"):
        assert now[key] == remembered[key], key


def test_a_skipped_turn_is_no_enemy_turn_for_the_siphon_death() -> None:
    game = put("P(3,3 hp1 e3); E virus(4,3) 2 siphon; own[15]")
    game.step(STEP)
    game.state.player.hp = 0
    outcome = game.step(2)
    assert (outcome.died, outcome.parts["siphon_death_penalty"]) == (True, 0.0)


def test_the_thirty_seventh_enemy_is_not_created() -> None:
    crowd = "; ".join(["E daemon(0,0) 3 stunned"] * MAX_ENEMIES)
    game = put(f"P(3,3 e1); {crowd}; T virus(5,5) 1; own[10]")
    game.step(WAIT)
    assert len(game.state.enemies) == MAX_ENEMIES
    assert game.state.transmissions == []


@pytest.mark.parametrize(
    ("blocks", "exit_at", "connected"),
    [
        ({1, 7, 13, 19, 25, 31}, 35, False),
        ({1, 7, 13, 19, 25}, 35, True),
        ({1, 7, 13, 19, 25}, 30, False),  # the way leads through the exit
        ({1, 7, 13, 19, 25}, 0, True),  # but not when the flood begins there
    ],
)
def test_connectivity(blocks: set[int], exit_at: int, connected: bool) -> None:
    assert is_connected(blocks, exit_at) is connected


def test_a_block_among_blocks_cannot_be_siphoned() -> None:
    assert not is_siphonable({1, 2, 3, 8})
    assert is_siphonable({1, 2, 8})


def debug_scenario() -> Game:
    """The fixed board of the original's window mode, with things of every kind."""
    data = "D(5,1,8/1); D(5,2,6/2); D(4,3,6/2); D(4,5,6/1); D(2,0,4/4); D(2,1,1/2); D(1,3,2/2); D(1,5,2/2)"
    coins = ["5,4", "4,2", "4,4", "3,0", "3,1", "3,3", "1,0", "1,1", "1,2", "1,4", "0,3"]
    sparks = ["5,3", "4,0", "3,2", "3,4", "3,5", "2,4", "2,5", "5,2"]
    resources = [*(f"C({at},1)" for at in coins), "C(0,4,2)", "C(4,3,2)", *(f"N({at},2)" for at in sparks)]
    rest = "E virus(1,1) 2; E daemon(1,4) 2; E daemon(0,4) 2; G(2,3,8); G(0,1,12); K(0,5); N(4,1,1); N(0,2,1)"
    player = "P(3,1 c1200 e1600 s200 sc5); stage 8; turn 15; own[8]"
    game = put("; ".join([player, data, rest, *resources]))
    cells = game.state.cells
    cells[number(5, 5)], game.state.exit = Cell("pickup"), number(0, 0)
    cells[number(0, 0)] = Cell("exit")
    cells[number(1, 1)] = cells[number(1, 1)]._replace(centre=True)
    cells[number(2, 2)] = Cell(Block(2, None, 2, question=True))
    cells[number(2, 3)] = Cell(Block(0, WARP, 5))
    return game


def test_the_debug_scenario_as_it_is_seen() -> None:
    game = debug_scenario()
    seen = observe(game.state)
    assert seen.flat().shape == (OBSERVATION_SIZE,)
    assert seen.flat().dtype == np.float32
    assert seen.programs.tolist() == [0, 0, 0, 1] + [0] * 19
    np.testing.assert_allclose(seen.player, [0.6, 0.2, 1, 1, 1, 1, 20, 0, 0, 0])
    assert np.flatnonzero(seen.grid[2, 2]).tolist() == [9]
    assert np.flatnonzero(seen.grid[1, 1]).tolist() == [0, 4, 37, 41]
    assert np.flatnonzero(seen.grid[2, 3]).tolist() == [8, 12 + WARP, 35]
    assert np.flatnonzero(seen.grid[4, 3]).tolist() == [7, 10, 35]  # and nothing of the credits below
    assert game.legal() == [0, 2, 3, 4, 5 + WARP]


def test_the_debug_scenario_runs_its_overdue_task() -> None:
    game = debug_scenario()
    game.step(2)
    assert [one.from_task for one in game.state.transmissions] == [True]
    assert game.state.next_task == 16 + 12


def test_random_play_keeps_the_promises_of_the_rules() -> None:
    chance = random.Random(1)
    game = Game(1)
    for k in range(3000):
        legal = game.legal()
        assert legal, "the mask is never empty in generated games"
        outcome = game.step(chance.choice(legal))
        assert not outcome.refused, "every action of the mask can be carried out"
        assert tuple(outcome.parts) == REWARD_PARTS
        state = game.state
        places = [one.at for one in state.transmissions]
        assert len(set(places)) == len(places)
        assert len(state.enemies) < MAX_ENEMIES
        assert sum(cell.content == "exit" for cell in state.cells) == 1
        assert not any(cell.credits and cell.energy for cell in state.cells)
        if outcome.done or outcome.truncated:
            game.reset(k)
