"""Random play in the compiled form and in the reference with the same draws: everything equal after every step."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

from operant.envs.hackmatrix.constants import (
    ACTION_COUNT,
    ACTION_NAMES,
    FIRST_PROGRAM,
    MAX_ENEMIES,
    REWARD_PARTS,
    UNDO,
)
from operant.envs.hackmatrix.reference import Game, Outcome
from operant.envs.hackmatrix.reference.draws import Threefry
from operant.envs.hackmatrix.reference.observation import observe
from operant.envs.hackmatrix.rules.state import SCENE_WORDS, State
from tests.unit.envs.hackmatrix.convert import game_words, scene_words, state_of
from tests.unit.envs.hackmatrix.rules_form import SIDE_BY_SIDE, Stepped, advance, keys_of, resetter, together, view
from tests.unit.envs.hackmatrix.starts import random_state, random_steps

UNKNOWN_ROW = np.uint32(7 << 23)  # where the ring of snapshots has its newest one is nobody's business
RICH_SHARE = 0.5
ODD_SHARE = 0.04


def is_close(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether two observations are equal but for the rounding of a division."""
    return bool((abs(found - wanted) <= 1e-6).all())


class Fuzz:
    """Games in both forms, played with the same actions and compared."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.games = [Game(seed * SIDE_BY_SIDE + index) for index in range(SIDE_BY_SIDE)]
        self.states: Any = together([self.enriched(game) for game in self.games])
        self.reached: Counter[str] = Counter()
        self.keys = jax.random.split(jax.random.key(seed), SIDE_BY_SIDE)
        self.steps = 0

    def enriched(self, game: Game) -> State:
        """The game's state, after it was replaced by a random one now and then."""
        if self.rng.random() < RICH_SHARE:
            game.put(random_state(self.rng))
            game.steps = random_steps(self.rng)
        assert isinstance(game.source, Threefry)
        return state_of(game.state, game.source.key, game.source.event, game.steps)

    def play(self, steps: int) -> None:
        """Play, and stop at the first difference."""
        masks = view(self.states)[1]
        for _ in range(steps):
            actions = [self.action(mask) for mask in masks]
            keys = jax.vmap(jax.random.fold_in, (0, None))(self.keys, self.steps)
            after = advance(self.states, actions, keys)
            fresh = np.asarray(jax.random.key_data(jax.vmap(jax.random.split)(keys)[:, 1]))
            for index, action in enumerate(actions):
                self.compare(index, action, after, fresh[index])
            self.states, masks = after.states, after.masks
            self.steps += 1
            self.enrich_some(masks)

    def enrich_some(self, masks: np.ndarray) -> None:
        """Give a few games a random state, so that play does not settle in ordinary ones."""
        chosen = self.rng.sample(range(SIDE_BY_SIDE), 4)
        for index in chosen:
            state = self.enriched(self.games[index])
            self.states.words[index], self.states.history[index] = state
            masks[index] = self.games[index].mask()

    def action(self, mask: np.ndarray) -> int:
        legal = np.flatnonzero(mask)
        if len(legal) == 0 or self.rng.random() < ODD_SHARE:
            return self.rng.randrange(ACTION_COUNT)
        if mask[FIRST_PROGRAM + UNDO] and self.rng.random() < 0.1:
            return FIRST_PROGRAM + UNDO
        return int(self.rng.choice(legal))

    def compare(self, index: int, action: int, after: Stepped, fresh: np.ndarray) -> None:
        """Play the action in the reference too; what differs fails with its place."""
        game, place = self.games[index], f"game {index}, step {self.steps}, {ACTION_NAMES[action]}"
        crowd = len(game.state.enemies)
        result = game.step(action)
        self.count(game, action, result, crowd)
        parts = after.parts(index)
        for name in REWARD_PARTS:
            assert parts[name] == pytest.approx(result.parts[name], rel=1e-6, abs=1e-4), f"{place}: {name}"
        ended = bool(after.outcome.terminated[index]), bool(after.outcome.truncated[index])
        assert ended == (result.done, result.truncated), place
        assert is_close(after.outcome.observation[index], observe(game.state).flat()), place
        if result.done or result.truncated:
            high, low = fresh.tolist()
            game.reset(high << 32 | low)
            assert is_close(after.seen[index], observe(game.state).flat()), place
        else:
            assert np.array_equal(after.seen[index], after.outcome.observation[index]), place
        self.compare_states(index, game, after, place)

    def compare_states(self, index: int, game: Game, after: Stepped, place: str) -> None:
        assert isinstance(game.source, Threefry)
        wanted = game_words(game.state, game.source.key, game.source.event, game.steps)
        found = after.states.words[index].copy()
        newest = found[SCENE_WORDS] >> np.uint32(23)
        found[SCENE_WORDS] = found[SCENE_WORDS] & ~UNKNOWN_ROW | wanted[SCENE_WORDS] & UNKNOWN_ROW
        assert np.array_equal(found, wanted), f"{place}: words {np.flatnonzero(found != wanted)}"
        if game.state.history:
            row = after.states.history[index, newest]
            assert np.array_equal(row, scene_words(game.state.history[-1])), f"{place}: snapshot"
        assert after.masks[index].tolist() == game.mask(), f"{place}: mask"

    def count(self, game: Game, action: int, result: Outcome, crowd: int) -> None:
        """Which events of the rules the play has met."""
        state = game.state
        self.reached["refused" if result.refused else ACTION_NAMES[action]] += 1
        gate = next(at for at, cell in enumerate(state.cells) if cell.content == "exit")
        events = {
            "died": result.died,
            "won": result.won,
            "stage completed": result.stage_completed and not result.won,
            "out of time": result.truncated,
            "out of time with a stage completed": result.truncated and result.stage_completed,
            "another exit than the gate": gate != state.exit,
            "36 enemies": len(state.enemies) == MAX_ENEMIES and crowd < MAX_ENEMIES,
            "enemies on one cell": len({enemy.at for enemy in state.enemies}) < len(state.enemies),
            "killed by a siphon's enemy": result.parts["siphon_death_penalty"] < 0,
            "poor siphon": result.parts["siphon_quality"] < 0,
            "wasted reset": result.parts["program_waste"] < 0,
            "eight snapshots": len(state.history) == 8,
            "a stage without blocks": result.stage_completed and not state.walls(),
        }
        self.reached.update(name for name, happened in events.items() if happened)


EXPECTED = {
    *ACTION_NAMES, "refused", "died", "won", "stage completed", "out of time", "another exit than the gate",
    "36 enemies", "enemies on one cell", "killed by a siphon's enemy", "poor siphon", "wasted reset", "eight snapshots",
}  # fmt: skip
# Met about once in a hundred thousand steps: the quick test's seed meets it, three of the ten seeds below do not.
RARE = {"another exit than the gate"}


@pytest.mark.slow
def test_the_forms_agree() -> None:
    fuzz = Fuzz(0)
    fuzz.play(110)
    assert fuzz.reached.total() > 20_000
    assert EXPECTED - set(fuzz.reached) == set()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_the_forms_agree_for_a_million_steps(seed: int) -> None:
    fuzz = Fuzz(seed)
    fuzz.play(1 + 100_000 // SIDE_BY_SIDE)
    print(seed, sorted(fuzz.reached.items()))
    assert EXPECTED - RARE - set(fuzz.reached) == set()


@pytest.mark.slow
def test_ordinary_play_never_meets_the_capacities() -> None:
    states = jax.tree.map(np.array, resetter()(keys_of(range(SIDE_BY_SIDE)))[0])
    most, masks = 0, view(states)[1]
    rng = Random(0)
    for step in range(60):
        assert masks.any(1).all()
        actions = [int(rng.choice(np.flatnonzero(mask))) for mask in masks]
        after = advance(states, actions, jax.random.split(jax.random.key(step), SIDE_BY_SIDE))
        states, masks = after.states, after.masks
        most = max(most, int((states.words[:, SCENE_WORDS - 2 * 36 : SCENE_WORDS - 36] != 0).sum(1).max()))
    assert 1 <= most < MAX_ENEMIES
