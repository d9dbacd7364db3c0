"""Every conformance case and every golden value of the rules, through the compiled form."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from operant.envs.hackmatrix.conformance.cases import Case, load_cases, read_numbers, read_setup
from operant.envs.hackmatrix.conformance.conform import faults
from operant.envs.hackmatrix.constants import ACTION_COUNT
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.reference import Game
from operant.envs.hackmatrix.reference.board import place
from operant.envs.hackmatrix.reference.export import export_state
from operant.envs.hackmatrix.rules.draws import Source, threefry
from tests.unit.envs.hackmatrix.convert import plain_of, state_of
from tests.unit.envs.hackmatrix.rules_form import SIDE_BY_SIDE, keys_of, play_cases, resetter, step, together, view
from tests.unit.envs.hackmatrix.test_golden import BOARDS, GAMES, RICH, VECTORS, WORDS_OF_SEVEN

CASES = load_cases()


def without_order(case: Case) -> Case:
    """The case as far as the compiled form knows: which programs are owned, not which came first (decision 15)."""
    return replace(case, results=tuple(_sorted(item) for item in case.results))


def _sorted(item: str) -> str:
    if not item.startswith("own ["):
        return item
    return f"own [{','.join(map(str, sorted(read_numbers(item[5:-1]))))}]"


@pytest.mark.parametrize("seed", [0, 1000, 2000])
def test_conformance(seed: int) -> None:
    forms = play_cases(CASES, seed)
    assert {form.case.text: found for form in forms if (found := faults(form, without_order(form.case)))} == {}


def test_threefry() -> None:
    for key, counter, words in VECTORS:
        found = threefry(*((jnp.uint32(a), jnp.uint32(b)) for a, b in (key, counter)))
        assert tuple(int(word) for word in found) == words


def test_words_of_a_seed() -> None:
    for event, address, word in WORDS_OF_SEVEN:
        assert int(Source(jnp.uint32(0), jnp.uint32(7), jnp.uint32(event)).u32(address)) == word


def test_boards_after_a_reset() -> None:
    seeds = [*BOARDS, *range(SIDE_BY_SIDE - len(BOARDS))]
    states, seen = resetter()(keys_of(seeds))
    again, _ = view(states)
    assert (np.asarray(seen) == again).all()
    for words, seed in zip(np.asarray(states.words), seeds, strict=True):
        assert export_state(plain_of(words)) == export_state(Game(seed).state)


def test_golden_games() -> None:
    policies = [policy for policy, _, _ in GAMES]
    states = together([start(*policy) for policy in policies])
    _, masks = view(states)
    returns, lengths, over = np.zeros(len(GAMES)), np.zeros(len(GAMES), int), np.zeros(len(GAMES), bool)
    ends = [states.words[index] for index in range(len(GAMES))]
    for k in range(200):
        actions = [0] * SIDE_BY_SIDE
        for index, (seed, stride, _) in enumerate(policies):
            legal = [action for action in range(ACTION_COUNT) if masks[index, action]]
            actions[index] = legal[(stride * k + seed) % len(legal)] if legal else 0
        after = step(states, actions)
        states, masks = after.states, after.masks
        for index in np.flatnonzero(~over):
            returns[index] += after.outcome.reward[index]
            lengths[index], over[index], ends[index] = k + 1, after.outcome.terminated[index], states.words[index]
    for index, (_, end, total) in enumerate(GAMES):
        assert returns[index] == pytest.approx(total, abs=1e-3)
        assert (int(lengths[index]), bool(over[index]), *stats(ends[index])) == end


def start(seed: int, stride: int, rich: bool):
    """The state in which a golden game begins."""
    game = Game(seed)
    if rich:
        game.put(read_state(read_setup(RICH)))
    return state_of(game.state, (0, seed), 1)


def stats(words: np.ndarray) -> tuple:
    state = plain_of(words)
    player = state.player
    crowd = len(state.enemies), len(state.transmissions)
    wealth = player.credits, player.energy, player.siphons, player.attack, player.score
    return state.stage, state.turn, player.hp, place(player.at), *wealth, *crowd
