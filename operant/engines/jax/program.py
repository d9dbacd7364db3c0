"""From a spec to a compiled program: many updates of many lanes in one call, on one device or several.

A lane is one session. All lanes are one batch of the same arithmetic, whatever each of them holds,
so a lane's results depend on how many lanes there are and which of them it is, and on nothing that
the others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec

from operant.engines.jax.chunks import ChunkRow, most_rows, row_sizes, row_updates
from operant.engines.jax.devices import AXIS, SPLIT, WHOLE, gathered, place, split_over
from operant.engines.jax.episodes import finished_episodes
from operant.engines.jax.learner import Learner, TrainState, UpdateMetrics
from operant.engines.jax.nets import Params
from operant.engines.jax.platform import compiler_options
from operant.run.seeding import Seeds

if TYPE_CHECKING:
    from operant.engines.jax.host.program import HostProgram


class Program:
    """A learner compiled for a number of lanes; a chunk has at most `most_rows` rows of `row_updates` updates."""

    def __init__(self, learner: Learner, lanes: int) -> None:
        self.learner = learner
        self.lanes = lanes
        self.devices = learner.spec.meta.devices
        self.row_updates = row_updates(learner)
        self.most_rows = most_rows(self.row_updates)
        self._axis = AXIS if self.devices > 1 else None
        self._parts = TrainState(WHOLE, WHOLE, SPLIT)  # pyright: ignore[reportArgumentType]
        self.options = compiler_options()

    @cached_property
    def init(self) -> Any:
        """Fresh states of all lanes, from the key and the weights of each."""

        def init(keys: Array, weights: Params) -> TrainState:
            return self._vmap_lanes(lambda key, each: self.learner.init(key, each, self._axis))(keys, weights)

        return self._compiled(init, (WHOLE, WHOLE), self._parts)

    def start(self, seeds: Sequence[Seeds]) -> TrainState:
        """Fresh states of all lanes, one for each of the sessions' seeds."""
        # The name of the stream is part of what a seed means: it stays.
        keys = jax.vmap(jax.random.key)(np.array([each.integer("fused") for each in seeds], np.uint32))
        weights = [self.learner.init_params(each.rng("init")) for each in seeds]
        return self.init(keys, jax.tree.map(lambda *leaves: np.stack(leaves), *weights))

    @cached_property
    def chunk(self) -> Any:
        """States after so many updates of all lanes, and their metrics; the states given are donated."""
        recorded = PartitionSpec(None, None, None, AXIS)
        metrics = UpdateMetrics(*[WHOLE] * 8, recorded)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return self._compiled(self._chunk, (self._parts, WHOLE, WHOLE), (self._parts, metrics), donate_argnums=0)

    def _compiled(self, function: Any, given: Any, back: Any, **how: Any) -> Any:
        if self.devices > 1:
            function = split_over(self.devices, function, given, back)
        return jax.jit(function, compiler_options=self.options, **how)

    def _vmap_lanes(self, function: Any) -> Any:
        """A function of one lane vmapped over all lanes; a single lane is compiled without a batch axis."""
        if self.lanes > 1:
            return jax.vmap(function)
        return lambda *given: _with_lane(function(*_without_lane(given)))

    def _chunk(self, states: TrainState, hyper: Any, updates: Array) -> tuple[TrainState, UpdateMetrics]:
        def update(state: TrainState, numbers: Any) -> tuple[TrainState, UpdateMetrics]:
            return self.learner.update(state, numbers, self._axis)

        if self.lanes > 1:
            return self._updates(jax.vmap(update), states, hyper, updates)
        # Outside the loop: a replay buffer that loses and gains an axis within it is copied each time.
        state, numbers = _without_lane((states, hyper))

        def keep_lane(state: TrainState, numbers: Any) -> tuple[TrainState, UpdateMetrics]:
            state, found = update(state, numbers)
            return state, _with_lane(found)

        state, metrics = self._updates(keep_lane, state, numbers, updates)
        return _with_lane(state), metrics

    def _updates(self, update: Any, states: TrainState, hyper: Any, updates: Array) -> tuple[TrainState, UpdateMetrics]:
        update = jax.jit(update)  # only so that it is traced once, for its shapes and for the loop
        start = _no_metrics(jax.eval_shape(update, states, hyper)[1], self.most_rows, self.row_updates)

        def one(number: Array, carry: tuple[TrainState, UpdateMetrics]) -> tuple[TrainState, UpdateMetrics]:
            states, metrics = carry
            states, found = update(states, hyper)
            return states, _accumulate(metrics, found, number, number // self.row_updates)

        return lax.fori_loop(0, updates, one, (states, start))

    def fetch(self, metrics: Any, updates: int) -> list[list[ChunkRow]]:
        """Of each lane, the rows of a chunk of `updates`."""
        on_host = jax.device_get(gathered(self.devices, metrics))
        return [self._rows(on_host, lane, updates) for lane in range(self.lanes)]

    def _rows(self, found: UpdateMetrics, lane: int, updates: int) -> list[ChunkRow]:
        rows, sums = [], found._replace(recorded=None)
        for row, size in enumerate(row_sizes(self.row_updates, updates)):
            first = row * self.row_updates
            recorded = jax.tree.map(lambda x, first=first, size=size: x[lane, first : first + size], found.recorded)
            mine = jax.tree.map(lambda x, row=row: x[row, lane], sums)
            rows.append(ChunkRow(size, mine, finished_episodes(recorded)))
        return rows

    def env_state(self) -> dict[str, np.ndarray]:
        """What reproduces environments on the host: there are none."""
        return {}

    def restore_envs(self, state: dict[str, np.ndarray]) -> None:
        """Return to what `env_state` gave: the train state has all of it."""

    def placed(self, states: TrainState) -> TrainState:
        """States of all lanes, on the devices where the program wants them."""
        return place(self.devices, states, self._parts)

    def whole(self, states: TrainState) -> TrainState:
        """States of all lanes, each array of which this process has whole."""
        return gathered(self.devices, states)


def _with_lane(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[None], tree)


def _without_lane(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[0], tree)


def _no_metrics(shapes: UpdateMetrics, rows: int, updates: int) -> UpdateMetrics:
    """Metrics of so many rows [rows, lanes], with room for the recorded steps of all their updates."""
    zero = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape), x.dtype), shapes._replace(recorded=None))
    env_maxima = jax.tree.map(lambda x: jnp.full((rows, *x.shape), -jnp.inf), shapes.env_maxima)
    room = jax.tree.map(lambda x: jnp.zeros((x.shape[0], rows * updates, *x.shape[1:]), x.dtype), shapes.recorded)
    return zero._replace(env_maxima=env_maxima, recorded=room)


def _accumulate(total: UpdateMetrics, one: UpdateMetrics, number: Array, row: Array) -> UpdateMetrics:
    """A chunk's metrics with those of its update `number` added to their row."""
    sums = jax.tree.map(
        lambda room, x: room.at[row].add(x),
        total._replace(env_maxima={}, recorded=None),
        one._replace(env_maxima={}, recorded=None),
    )
    env_maxima = jax.tree.map(lambda room, x: room.at[row].max(x), total.env_maxima, one.env_maxima)
    recorded = jax.tree.map(lambda room, x: room.at[:, number].set(x), total.recorded, one.recorded)
    return sums._replace(env_maxima=env_maxima, recorded=recorded)


def advance(
    program: Program | HostProgram, states: TrainState, hyper: Any, updates: int, moving: Sequence[int]
) -> tuple[TrainState, list[list[ChunkRow]]]:
    """States after one chunk, whose results only the lanes `moving` keep; and the rows of each lane."""
    resting = [i for i in range(program.lanes) if i not in moving]
    unchanged = {i: jax.tree.map(lambda x, i=i: x[i].copy(), states) for i in resting}
    states, metrics = program.chunk(states, hyper, np.int32(updates))
    for i, state in unchanged.items():
        states = jax.tree.map(lambda x, old, i=i: x.at[i].set(old), states, state)
    return states, program.fetch(metrics, updates)


def stacked(lanes: list[Any]) -> Any:
    """Pytrees of single lanes as one of all lanes."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *lanes)


def lane_of(tree: Any, lane: int) -> Any:
    """One lane of a pytree of all lanes."""
    return jax.tree.map(lambda leaf: leaf[lane], tree)
