"""A learner compiled for environments on the host: acting and updating are programs, between which the host steps.

It stands where `Program` does, with a single lane. A rollout acts step by step, with the policy that its last update
made, and is handed to the learner as a whole: the weights, the replay buffer and the metrics stay on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax.chunks import ChunkRow, row_updates
from operant.engines.jax.episodes import FinishedEpisode
from operant.engines.jax.host.env import HostEnv
from operant.engines.jax.host.groups import VectorEnvGroups
from operant.engines.jax.host.packing import Packing
from operant.engines.jax.host.rollout import Recorder, joined
from operant.engines.jax.learner import (
    HostRollout,
    Learner,
    LearnMetrics,
    Policy,
    PolicyInput,
    TrainState,
    UpdateMetrics,
)
from operant.engines.jax.nets import Params
from operant.engines.jax.platform import compiler_options
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds

MOST_UPDATES = 64  # of one chunk: between two, a session can be stopped


class Acting(NamedTuple):
    """What the actions of a rollout depend on, beside what is seen.

    Policy, updates so far and hyperparameters are packed; `bits` [S, E, ...] are the random bits of every call.
    """

    packed: list[Array]
    bits: Array


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["names"])
@dataclass(frozen=True)
class StackedMetrics:
    """Metrics of an update as one array, which is fetched at once: the named means, `learned` and `gradient_steps`."""

    names: tuple[str, ...]
    values: Array

    @classmethod
    def of(cls, metrics: LearnMetrics) -> StackedMetrics:
        """The metrics in the order of their names."""
        return cls(tuple(metrics.means), jnp.stack([*metrics.means.values(), metrics.learned, metrics.gradient_steps]))


class HostProgram:
    """A learner whose environments step on the host; a chunk has one row, of at most `row_updates` updates."""

    lanes = 1
    devices = 1
    most_rows = 1

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.options = compiler_options()
        whole = row_updates(learner)
        # A divisor, so that metric rows come at the frames where the whole row would end.
        self.row_updates = next(count for count in range(min(whole, MOST_UPDATES), 0, -1) if whole % count == 0)
        self._envs: VectorEnvGroups | None = None
        self._images: Array | None = None
        self._packing: Packing | None = None

    @property
    def steps(self) -> int:
        """Steps of every environment in a rollout."""
        return self.learner.frames // self.envs.num

    @property
    def envs(self) -> VectorEnvGroups:
        """The environments of the session that `start` began."""
        assert self._envs is not None, "start comes first"
        return self._envs

    def start(self, seeds: Sequence[Seeds]) -> TrainState:
        """A fresh state and fresh environments of the session with these seeds."""
        (mine,), spec = seeds, self.learner.spec
        self.close()
        self._envs = VectorEnvGroups(spec, mine, group_count(spec.env.num_envs))
        self._images = self._room_for_images()
        weights = self.learner.init_params(mine.rng("init"))
        return self._init(jax.random.key(mine.integer("fused")), weights)

    def _room_for_images(self) -> Array | None:
        """Where a rollout's images [T, N, ...] stay from acting to learning, so that they come to the device once.

        None of other observations, which are small, and of a replay buffer, which has its own room.
        """
        learner = self.learner
        if learner.OFF_POLICY or not (isinstance(learner.env, HostEnv) and learner.env.images):
            return None
        shape = (self.steps, self.envs.num, *learner.env.observation_shape)
        return jnp.zeros(shape, jnp.uint8)

    def placed(self, states: TrainState) -> TrainState:
        """The state on its device."""
        return jax.device_put(states, jax.devices()[0])

    def whole(self, states: TrainState) -> TrainState:
        """The state: this process has all of it."""
        return states

    @cached_property
    def _init(self) -> Any:
        def init(key: Array, weights: Params) -> TrainState:
            return _lane(self.learner.init(key, weights, None))

        return jax.jit(init, compiler_options=self.options)

    @cached_property
    def _prepare(self) -> Any:
        """What the first rollout of a chunk acts by; the others have it from the update before them."""
        return jax.jit(lambda *given: self._acting(*_first(given)), compiler_options=self.options)

    def _acting(self, policy: Policy, learner: Any, hyper: Any) -> Acting:
        given = (policy, learner.updates, hyper)
        self._packing = self._packing or Packing(given)
        groups = len(self.envs.groups)
        of_play = jax.random.split(learner.key, 3)[1]
        shape = (self.envs.num // groups, self.learner.exploration_bits)

        def bits(number: Array) -> Array:
            return jax.random.bits(jax.random.fold_in(of_play, number), shape)

        return Acting(self._packing.pack(given), jax.vmap(bits)(jnp.arange(self.steps * groups)))

    @cached_property
    def _act(self) -> Any:
        """The actions of a call of a rollout, the hidden states after it, and the images so far with those acted on."""

        def act(
            acting: Acting, seen: PolicyInput, number: Array, images: Array | None
        ) -> tuple[Array, Any, Array | None]:
            assert self._packing is not None, "_acting has packed what is unpacked here"
            policy, updates, hyper = self._packing.unpack(acting.packed)
            actions, hidden = self.learner.explore_on_host(policy, updates, hyper, seen, acting.bits[number])
            if images is None:
                return actions, hidden, None
            groups = len(self.envs.groups)
            place = (number // groups, number % groups * len(seen.observation), *[0] * (images.ndim - 2))
            return actions, hidden, lax.dynamic_update_slice(images, seen.observation[None], place)

        return jax.jit(act, donate_argnums=3, compiler_options=self.options)

    @cached_property
    def _store(self) -> Any:
        """The rollout state with what was played.

        A program of its own: one that learns from the buffer too would be given a copy of it.
        """

        def store(rollout: Any, played: HostRollout) -> Any:
            return _lane(self.learner.store_on_host(_first(rollout), played))

        return jax.jit(store, donate_argnums=0, compiler_options=self.options)

    @cached_property
    def _learn(self) -> Any:
        """The state after an update, its metrics, and what the next rollout acts by; all but a replay is donated."""

        def learn(
            given: tuple[Policy, Any], rollout: Any, hyper: Any, played: HostRollout, learns: bool
        ) -> tuple[TrainState, StackedMetrics | None, Acting]:
            (policy, learner), hyper = _first((given, hyper))
            state = TrainState(policy, learner, _first(rollout))
            state, metrics = self.learner.learn_on_host(state, hyper, played, learns)
            stacked = None if metrics is None else StackedMetrics.of(metrics)
            return _lane(state), stacked, self._acting(state.policy, state.learner, hyper)

        return jax.jit(learn, static_argnums=4, donate_argnums=0, compiler_options=self.options)

    def chunk(
        self, states: TrainState, hyper: Any, updates: int | np.int32
    ) -> tuple[TrainState, tuple[list[StackedMetrics], list[Ended]]]:
        """The state after so many updates, their metrics and the episodes that ended; the state given is donated."""
        found: list[StackedMetrics] = []
        ended: list[Ended] = []
        done, acting = int(states.learner.updates[0]), self._prepare(states.policy, states.learner, hyper)
        for number in range(done + 1, done + 1 + int(updates)):
            played, over = self._play(acting, states.rollout)
            policy, learner, rollout = states
            if self.learner.OFF_POLICY:
                rollout = self._store(rollout, played)
            learns = number * self.learner.frames >= self.learner.start
            states, metrics, acting = self._learn((policy, learner), rollout, hyper, played, learns)
            states = states._replace(rollout=_merged(states.rollout, rollout))
            found += [] if metrics is None else [metrics]
            ended += over
        return states, (found, ended)

    def _play(self, acting: Acting, rollout: Any) -> tuple[HostRollout, list[Ended]]:
        """A rollout with the newest policy, and the episodes that ended in it."""
        recorders = [Recorder(group, self.learner, self._images is None) for group in self.envs.groups]
        calls, ended = self.steps * len(recorders), []
        hidden = self.envs.shares(_first(self.learner.hidden_in(rollout)))

        def act(number: int) -> np.ndarray:
            which = number % len(recorders)
            group, state = self.envs.groups[which], hidden[which]
            seen = (
                PolicyInput(group.obs, group.mask)
                if state is None
                else PolicyInput(group.obs, group.mask, group.begun, state)
            )
            action, hidden[which], self._images = self._act(acting, seen, np.int32(number), self._images)
            return np.asarray(action)

        # A group's actions are computed while the other groups step.
        for number, recorder in enumerate(recorders):
            recorder.send(act(number))
        for number in range(calls):
            recorder, following = recorders[number % len(recorders)], number + len(recorders)
            ended += recorder.receive()
            if following < calls:
                recorder.send(act(following))
        played = joined([recorder.close() for recorder in recorders])
        return played if self._images is None else played._replace(observation=self._images), ended

    def fetch(self, metrics: tuple[list[StackedMetrics], list[Ended]], updates: int) -> list[list[ChunkRow]]:
        """The one row of the one lane: what a chunk of `updates` returned."""
        found, ended = metrics
        means: dict[str, Any] = {}
        learned = steps = 0
        if found:
            sums = np.stack([np.asarray(each.values, np.float64) for each in found]).sum(0)
            *totals, learned, steps = sums.tolist()
            means = dict(zip(found[0].names, totals, strict=True))
        played = (len(ended), sum(over.score for over in ended), sum(over.length for over in ended))
        episodes = [FinishedEpisode(over.seed, over.score, over.length, over.terminated) for over in ended]
        counted: Any = (means, {}, {}, learned, steps, *played, None)
        return [[ChunkRow(updates, UpdateMetrics(*counted), episodes)]]

    def env_state(self) -> dict[str, np.ndarray]:
        """What reproduces the environments."""
        return self.envs.state()

    def restore_envs(self, state: dict[str, np.ndarray]) -> None:
        """Return to what `env_state` gave."""
        self.envs.restore(state)

    def close(self) -> None:
        """Release the environments."""
        if self._envs is not None:
            self._envs.close()


def group_count(num_envs: int) -> int:
    """Groups of environments: two where an accelerator computes while the host steps."""
    return 2 if jax.default_backend() != "cpu" and num_envs % 2 == 0 else 1


def _merged(new: Any, old: Any) -> Any:
    """A rollout state, with those parts of the old one that are None in the new one."""
    return jax.tree.map(lambda part, kept: kept if part is None else part, new, old, is_leaf=lambda x: x is None)


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _lane(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)
