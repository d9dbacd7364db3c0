"""The compiled form for tests: many games side by side, compiled once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from operant.envs.functional.env import Outcome
from operant.envs.hackmatrix.conformance.cases import Case
from operant.envs.hackmatrix.constants import (
    ACTION_COUNT,
    CELLS,
    CHANNELS,
    PLAYER_FEATURES,
    PROGRAM_COUNT,
    REWARD_PARTS,
    SIZE,
)
from operant.envs.hackmatrix.faces import wire
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.reference import Outcome as Result
from operant.envs.hackmatrix.reference.state import State as Plain
from operant.envs.hackmatrix.rules.env import HackMatrixEnv
from operant.envs.hackmatrix.rules.state import State
from tests.unit.envs.hackmatrix.convert import plain_of, state_of

ENV = HackMatrixEnv(form="jax")
SIDE_BY_SIDE = 192


class Stepped(NamedTuple):
    """Arrays of the host after one step of every game."""

    states: Any
    seen: np.ndarray
    outcome: Any
    masks: np.ndarray

    def parts(self, index: int) -> dict[str, float]:
        return {name: float(self.outcome.metrics[f"reward/{name}"][index]) for name in REWARD_PARTS}


@lru_cache(maxsize=1)
def resetter() -> Any:
    """New games of the keys given, and what is seen of them."""
    return jax.jit(jax.vmap(ENV.reset))


def keys_of(seeds: Iterable[int]) -> jax.Array:
    """The typed keys of seeds."""
    return jax.vmap(jax.random.key)(np.array(list(seeds)))


@lru_cache(maxsize=1)
def _stepper() -> Any:
    def step(states: State, actions: jax.Array) -> tuple[State, jax.Array, Outcome, jax.Array]:
        states, outcome = jax.vmap(ENV.step)(states, actions, jnp.zeros(len(actions)))
        return states, outcome.observation, outcome, jax.vmap(ENV.mask)(states)

    return jax.jit(step)


@lru_cache(maxsize=1)
def _advancer() -> Any:
    def advance(states: State, actions: jax.Array, keys: jax.Array) -> tuple[State, jax.Array, Outcome, jax.Array]:
        states, seen, outcome = ENV.advance(states, actions, keys)
        return states, seen, outcome, jax.vmap(ENV.mask)(states)

    return jax.jit(advance)


@lru_cache(maxsize=1)
def _viewer() -> Any:
    return jax.jit(lambda states: (jax.vmap(ENV.observe)(states), jax.vmap(ENV.mask)(states)))


def step(states: State, actions: Iterable[int]) -> Stepped:
    """One step of every game, without resets."""
    return _on_host(_stepper()(states, np.array(list(actions), np.int32)))


def advance(states: State, actions: Iterable[int], keys: jax.Array) -> Stepped:
    """One step of every game, with resets."""
    return _on_host(_advancer()(states, np.array(list(actions), np.int32), keys))


def view(states: State) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks."""
    seen, masks = _viewer()(states)
    return np.asarray(seen), np.asarray(masks)


def _on_host(result: Any) -> Stepped:
    return Stepped(*jax.tree.map(np.array, result))


def together(states: list[State]) -> Any:
    """As many states as are played side by side, the last one repeated where there are fewer."""
    filled = states + [states[-1]] * (SIDE_BY_SIDE - len(states))
    return jax.tree.map(lambda *rows: np.stack(rows), *filled)


class Recorded:
    """A case that was played together with others, shown to the checker as if it played alone."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self.start = state_of(read_state(case.state), (0, seed), 1)
        self._replies: list[dict[str, Any]] = []
        self._shown = 0
        self._first: dict[str, Any] = {}
        self._plain = Plain(read_state(case.state).player)
        self._seen, self._mask = np.zeros(0), np.zeros(0)

    def record(self, words: np.ndarray, seen: np.ndarray, mask: np.ndarray, result: Result | None) -> None:
        """What the form shows before the first action (without a result) or after one."""
        self._plain, self._seen, self._mask = plain_of(words), seen, mask
        if result is None:
            self._first = wire.observation(self._plain)
        else:
            self._replies.append(wire.outcome(self._plain, result))

    def set_state(self, state: dict[str, Any]) -> dict[str, Any]:
        assert state is self.case.state
        return self._first

    def step(self, action: int) -> dict[str, Any]:
        assert action == self.case.actions[self._shown]
        self._shown += 1
        return self._replies[self._shown - 1]

    def internal(self) -> dict[str, Any]:
        return wire.internal(self._plain)

    def valid_actions(self) -> list[int]:
        return [action for action in range(ACTION_COUNT) if self._mask[action]]

    def arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        grid = self._seen[PLAYER_FEATURES + PROGRAM_COUNT :]
        assert len(grid) == CELLS * CHANNELS
        return self._seen[:PLAYER_FEATURES], grid.reshape(SIZE, SIZE, CHANNELS)


def play_cases(cases: list[Case], seed: int) -> list[Recorded]:
    """All cases, each played to its end."""
    forms = [Recorded(case, seed + case.number) for case in cases]
    states = together([form.start for form in forms])
    seen, masks = view(states)
    for index, form in enumerate(forms):
        form.record(states.words[index], seen[index], masks[index], None)
    for turn in range(max(len(case.actions) for case in cases)):
        playing = [index for index, case in enumerate(cases) if turn < len(case.actions)]
        actions = [0] * SIDE_BY_SIDE
        for index in playing:
            actions[index] = cases[index].actions[turn]
        after = step(states, actions)
        states = after.states
        for index in playing:
            forms[index].record(states.words[index], after.seen[index], after.masks[index], _result(after, index))
    return forms


def _result(after: Stepped, index: int) -> Result:
    parts = after.parts(index)
    died = plain_of(after.states.words[index]).player.hp == 0
    refused = parts["step_penalty"] == 0
    return Result(
        parts=parts,
        refused=refused,
        stage_completed=parts["stage_completion"] > 0,
        died=died and not refused,
        won=parts["victory"] > 0,
        truncated=bool(after.outcome.truncated[index]),
    )
