"""The golden draws, boards and games of the rules."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from operant.envs.hackmatrix.conformance.cases import read_setup
from operant.envs.hackmatrix.constants import ENEMY_NAMES, PROGRAM_NAMES
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.reference import Game
from operant.envs.hackmatrix.reference.board import place
from operant.envs.hackmatrix.reference.draws import Threefry, threefry
from operant.envs.hackmatrix.reference.state import State

VECTORS = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)
WORDS_OF_SEVEN = (
    (0, 0, 3625411723),
    (0, 1, 195045567),
    (0, 2, 966301609),
    (0, 3, 276534068),
    (1, 200, 3254404472),
    (5, 1000, 1060484129),
)

# seed: player, credits, exit, transmission, blocks, credits and energy by row
BOARDS = {
    0: (
        (0, 5),
        10,
        (5, 5),
        ("glitch", (1, 0)),
        "0,1 data 5; 0,2 data 5; 1,1 data 5; 2,5 data 6; 3,1 data 4; 3,2 data 1; 3,3 undo; 3,4 data 5; 4,1 pull",
        "2....2/..31../1..2../2...../..2.2./.111..",
        "...21./1...21/.21.2./.....1/2..3.2/1...1.",
    ),
    7: (
        (5, 5),
        10,
        (0, 0),
        ("glitch", (0, 0)),
        "2,2 wait; 2,4 siph+; 3,0 data 7; 3,4 d_bom; 4,2 reduc",
        ".2.2../.1.131/11.2.3/...1../2....2/...2..",
        "..1.22/2.2.../....../.11..1/.1.23./222.13",
    ),
    12345: (
        (0, 5),
        10,
        (0, 0),
        ("cryptog", (5, 0)),
        "1,4 data 8; 3,0 undo; 3,2 reduc; 4,2 anti-v; 4,4 data 8; 5,4 data 6",
        ".22..2/2213../1.2.13/...112/2..2../1.1...",
        "...22./.....3/.1.2../.1..../.1...1/.1.1.1",
    ),
}

RICH = (
    "P(3,3 c60 e60 s6); E virus(0,0) 2; E daemon(5,0) 3; E cryptog(0,5) 2; T glitch(1,4) 2; D(4,3,3); G(2,4,9); "
    "D(1,1,2); D(4,1,4); C(3,2,2); N(2,3,1); K(0,3); own[5..27]; stage 2"
)
# seed, stride, rich; steps, done, stage, turn, hp, at, credits, energy, siphons, attack, score, enemies,
# transmissions, return
GAMES = (
    ((0, 7, False), (66, True, 1, 66, 0, (2, 4), 10, 0, 0, 1, 0, 1, 0), -1.91),
    ((1, 7, False), (68, True, 1, 68, 0, (0, 5), 5, 11, 0, 1, 0, 3, 0), -0.805),
    ((2, 7, False), (41, True, 1, 41, 0, (5, 4), 10, 2, 0, 1, 0, 5, 1), -10.935),
    ((3, 7, False), (29, True, 1, 29, 0, (4, 5), 0, 11, 0, 1, 0, 1, 0), -2.34),
    ((5, 7, False), (54, True, 1, 52, 0, (2, 3), 3, 10, 0, 1, 0, 2, 0), -0.34),
    ((6, 7, False), (200, False, 1, 200, 1, (5, 0), 3, 2, 0, 1, 4, 0, 0), 3.5),
    ((100, 17, True), (101, True, 3, 6, 0, (3, 5), 0, 0, 0, 2, 27, 3, 0), 6.69),
    ((102, 13, True), (81, True, 3, 10, 0, (5, 4), 0, 0, 0, 3, 28, 4, 0), 8.085),
    ((103, 5, True), (200, False, 2, 130, 3, (1, 4), 1, 0, 0, 3, 29, 0, 0), 12.6),
    ((105, 11, True), (170, True, 3, 12, 0, (5, 5), 1, 0, 0, 3, 18, 2, 0), 2.06),
)


@pytest.mark.parametrize(("key", "counter", "words"), VECTORS)
def test_threefry(key: tuple[int, int], counter: tuple[int, int], words: tuple[int, int]) -> None:
    assert threefry(key, counter) == words


def test_words_of_a_seed() -> None:
    source = Threefry(7)
    for event, address, word in WORDS_OF_SEVEN:
        source.event = event
        assert source.u32(address) == word


@pytest.mark.parametrize("seed", BOARDS)
def test_board_after_a_reset(seed: int) -> None:
    player, credits, exit_at, transmission, blocks, credit_rows, energy_rows = BOARDS[seed]
    state = Game(seed).state
    assert (place(state.player.at), state.player.credits) == (player, credits)
    assert (state.player.energy, state.player.siphons) == (0, 0)
    assert place(state.exit) == exit_at
    assert [(ENEMY_NAMES[one.kind], place(one.at)) for one in state.transmissions] == [transmission]
    assert "; ".join(_block_words(state)) == blocks
    assert _rows(cell.credits for cell in state.cells) == credit_rows
    assert _rows(cell.energy for cell in state.cells) == energy_rows


def _block_words(state: State) -> list[str]:
    words = []
    for at, cell in enumerate(state.cells):
        if cell.block:
            row, col = place(at)
            content = f"data {cell.block.points}" if cell.block.program is None else PROGRAM_NAMES[cell.block.program]
            words.append(f"{row},{col} {content}")
    return words


def _rows(amounts: Iterable[int]) -> str:
    text = "".join(str(amount or ".") for amount in amounts)
    return "/".join(text[start : start + 6] for start in range(0, 36, 6))


@pytest.mark.parametrize(("policy", "end", "total"), GAMES)
def test_game(policy: tuple[int, int, bool], end: tuple, total: float) -> None:
    seed, stride, rich = policy
    game = Game(seed)
    if rich:
        game.put(read_state(read_setup(RICH)))
    rewards: list[float] = []
    done = False
    while not done and len(rewards) < 200:
        legal = game.legal()
        outcome = game.step(legal[(stride * len(rewards) + seed) % len(legal)])
        rewards.append(outcome.reward)
        done = outcome.done
    state, player = game.state, game.state.player
    stats = player.credits, player.energy, player.siphons, player.attack, player.score
    crowd = len(state.enemies), len(state.transmissions)
    assert (len(rewards), done, state.stage, state.turn, player.hp, place(player.at), *stats, *crowd) == end
    assert sum(rewards) == pytest.approx(total, abs=1e-4)
