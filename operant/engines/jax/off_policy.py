"""What the off-policy learners share: an update, its sizes, and the rollouts that fill their replay buffer.

Before `training_start` the gradient steps of a compiled rollout are computed all the same and dropped: a program has
one shape.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import distributions, nets, normalize, priorities, vector_env
from operant.engines.jax.devices import Axis, device_key
from operant.engines.jax.frames import FrameReplay
from operant.engines.jax.host.env import HostEnv
from operant.engines.jax.learner import (
    HostRollout,
    Learner,
    LearnMetrics,
    Policy,
    PolicyInput,
    RecordedSteps,
    TrainState,
    UpdateMetrics,
    build_schedule,
)
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.optimizer import Optimizer
from operant.engines.jax.priorities import Priorities
from operant.engines.jax.replay import Replay, Transition, TransitionReplay
from operant.engines.jax.vector_env import EnvMetrics, EpisodeSums, VecEnvState
from operant.envs.functional.env import FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.memories import PrioritisedReplaySpec
from operant.spec.settings.off_policy import TwinAlgorithm

Act = Callable[[Array, Array, Array], Array]
# From a carry, a batch and further random bits to the next carry, the batch's errors [..., B], and metrics.
GradientStep = Callable[[Any, Transition, Array | None], tuple[Any, Array, Any]]


class RolloutState(NamedTuple):
    """The vector env, where it is compiled, the replay buffer, and priorities where it is sampled by them."""

    envs: VecEnvState | None
    buffer: Any
    priorities: Priorities | None = None


Store = Callable[[RolloutState, Transition, Array | None], RolloutState]


class OffPolicy(Learner):
    """A learner with a replay buffer (abstract).

    A rollout has `steps` steps of every environment, and each device has `size` transitions of a batch. `inputs` is
    what networks are told of observations.
    """

    ON_HOST = True
    OFF_POLICY = True
    iterations: int

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        spec = self.spec
        memory, devices, settings = spec.agent.memory, spec.meta.devices, spec.agent.algorithm
        assert isinstance(settings, DqnSpec | TwinAlgorithm)
        assert memory is not None, "the schema gives every off-policy algorithm a memory"
        self.net, self.memory = spec.agent.net, memory
        self.start, self.iterations = settings.training_start, settings.training_iter
        self.frames = settings.training_frequency
        self.local = spec.env.num_envs // devices
        self.steps = self.frames // spec.env.num_envs
        self.size = memory.batch_size // devices
        self.optimizer = Optimizer(self.net.optimizer)
        self.dtype, self.storage = jnp.dtype(spec.meta.precision), env.storage(spec.meta.storage)
        shape = env.observation_shape
        self.inputs = nets.inputs_of(shape) if self.net.READS_IMAGES else math.prod(shape)
        self.replay: Replay
        if isinstance(env, HostEnv) and env.images:
            self.replay = FrameReplay(env, self.local, memory.max_size, env.stack)
        else:
            self.replay = TransitionReplay(env, self.local, memory.max_size // spec.env.num_envs, self.storage)

    @abstractmethod
    def actor(self, policy: Policy, updates: Array, hyper: Any) -> Act:
        """How to act in training after so many updates."""

    @abstractmethod
    def gradient_steps(
        self, policy: Policy, learner: Any, rollout: RolloutState, key: Array, hyper: Any, number: Array, axis: Axis
    ) -> tuple[nets.Params, Any, Priorities | None, dict[str, Array]]:
        """The gradient steps of update `number`, on what is in the rollout state's replay buffer.

        Returns weights of the policy, the learner's state, new priorities where there are any, and mean metrics.
        """

    def init_rollout(self, key: Array, axis: Axis) -> RolloutState:
        """Fresh episodes, where environments are compiled, and an empty buffer."""
        envs = None if self.env.on_host else vector_env.reset(self.env, device_key(axis, key), self.local)
        is_prioritised = isinstance(self.memory, PrioritisedReplaySpec)
        ranks = priorities.init(self.local, self.replay.length) if is_prioritised else None
        return RolloutState(envs, self.replay.init(), ranks)

    def store(self, rollout: RolloutState, step: Transition, begun: Array | None) -> RolloutState:
        """The rollout state with one more step of every environment in the buffer."""
        clip = self.spec.env.clip_reward
        kept = step if clip is None else step._replace(reward=jnp.clip(step.reward, -clip, clip))
        buffer, slot = self.replay.add(rollout.buffer, kept, begun)
        ranks = None if rollout.priorities is None else priorities.add(rollout.priorities, slot)
        return rollout._replace(buffer=buffer, priorities=ranks)

    def over_batches(
        self, step: GradientStep, start: Any, rollout: RolloutState, bits: Array, further: Array | None, number: Array
    ) -> tuple[Any, Priorities | None, Any]:
        """A gradient step on each of `training_iter` batches: the last carry, new priorities, and all metrics.

        `bits` [I, B] draw the batches; those in `further` [I, ...], if any, are the step's own.
        """
        buffer, memory = rollout.buffer, self.memory
        if rollout.priorities is None:
            # All batches at once: a loop that reads the buffer would be given a copy of it.
            batches = self.replay.take(buffer, self.replay.draw(buffer, bits))

            def uniformly(carry: Any, given: tuple[Transition, Array | None]) -> tuple[Any, Any]:
                after, _, metrics = step(carry, *given)
                return after, metrics

            end, metrics = lax.scan(uniformly, start, (batches, further))
            return end, None, metrics
        assert isinstance(memory, PrioritisedReplaySpec)
        beta = build_schedule(memory.beta).at(number.astype(jnp.float32) * self.frames)
        ready = self.replay.ready(buffer)

        def prioritised(carry: tuple[Any, Priorities], given: tuple[Array, Array | None]) -> tuple[Any, Any]:
            index, weight = priorities.draw(carry[1], ready, uniform(given[0]), beta)
            batch = self.replay.take(buffer, index)._replace(weight=weight)
            after, error, metrics = step(carry[0], batch, given[1])
            size = jnp.abs(error).reshape(-1, len(index)).mean(0)
            return (after, priorities.update(carry[1], index, size, memory)), metrics

        (end, ranks), metrics = lax.scan(prioritised, (start, rollout.priorities), (bits, further))
        return end, ranks, metrics

    def update(self, state: TrainState, hyper: Any, axis: Axis) -> tuple[TrainState, UpdateMetrics]:
        """One rollout and the gradient steps after it."""
        key, of_play, of_batches = jax.random.split(state.learner.key, 3)
        act = self.actor(state.policy, state.learner.updates, hyper)
        rollout, observations, env_metrics, recorded, ended = collect_rollout(
            self.env, state.rollout, device_key(axis, of_play), self.steps, act, self.store, axis
        )
        learns = (state.learner.updates + 1) * self.frames >= self.start
        policy = self.update_stats(state.policy, observations, axis)
        number = state.learner.updates + 1
        of_batches = device_key(axis, of_batches)
        learn = partial(self.gradient_steps, policy, state.learner, rollout, of_batches, hyper, number, axis)
        unchanged = (policy.params, state.learner, rollout.priorities)
        params, learner, ranks, means = learn_if(learns, learn, unchanged, axis)
        rollout = rollout._replace(priorities=ranks)
        env_means, env_maxima = vector_env.reduce_metrics(env_metrics, self.steps, axis)
        after = TrainState(policy._replace(params=params), learner._replace(key=key, updates=number), rollout)
        learned = learns.astype(jnp.int32)
        return after, UpdateMetrics(means, env_means, env_maxima, learned, learned * self.iterations, *ended, recorded)

    def update_stats(self, policy: Policy, observations: Array, axis: Axis) -> Policy:
        """The policy with its statistics, if any, of these observations [T, N, ...] too."""
        if policy.obs_stats is None:
            return policy
        rows = observations.reshape(-1, *observations.shape[2:])
        return policy._replace(obs_stats=normalize.update(policy.obs_stats, rows, axis))

    def normalize_obs(self, obs_stats: RunningMeanStd | None, observation: Array) -> Array:
        """Observations as inputs of the networks: a perceptron takes images as vectors."""
        kept = observation.astype(self.storage).astype(jnp.float32)
        found = normalize.normalize_obs(obs_stats, kept, self.spec.env.clip_obs)
        return found if self.net.READS_IMAGES else found.reshape(len(found), -1)

    @property
    def exploration_bits(self) -> int:
        return distributions.num_outputs(self.env.actions) + 1

    def explore_on_host(
        self, policy: Policy, updates: Array, hyper: Any, seen: PolicyInput, bits: Array
    ) -> tuple[Array, None]:
        return self.actor(policy, updates, hyper)(seen.observation, bits[:, 0], bits[:, 1:]), None

    def store_on_host(self, rollout: RolloutState, played: HostRollout) -> RolloutState:
        successor = played.next_observation
        steps = Transition(played.observation, played.action, played.reward, successor, played.terminated)
        return lax.scan(lambda now, step: (self.store(now, *step), None), rollout, (steps, played.begun))[0]

    def learn_on_host(
        self, state: TrainState, hyper: Any, played: HostRollout, learns: bool
    ) -> tuple[TrainState, LearnMetrics | None]:
        key, _, of_batches = jax.random.split(state.learner.key, 3)
        number, metrics, ranks = state.learner.updates + 1, None, None
        policy, learner = self.update_stats(state.policy, played.observation, None), state.learner
        if learns:
            given = (policy, learner, state.rollout, of_batches, hyper, number, None)
            params, learner, ranks, means = self.gradient_steps(*given)
            policy = policy._replace(params=params)
            metrics = LearnMetrics(means, jnp.int32(1), jnp.int32(self.iterations))
        after = RolloutState(None, None, ranks)
        return TrainState(policy, learner._replace(key=key, updates=number), after), metrics

    def update_counts(self) -> tuple[list[str], int]:
        batch = self.memory.batch_size
        steps = max(0, self.spec.env.max_frame - self.start) // self.frames * self.iterations
        ratio = self.iterations * batch / self.frames
        return [
            f"{steps:,} gradient steps of {batch} from frame {self.start:,} on,"
            f" {self.iterations} every {self.frames} frames",
            f"each transition is learned from about {ratio:g} times; replay of {self.memory.max_size:,} transitions",
        ], steps


def learn_if(learns: Array, learn: Callable[[], tuple[Any, ...]], unchanged: tuple[Any, ...], axis: Axis) -> Any:
    """What `learn` gives if it `learns`, else what is `unchanged` and means of 0.

    One device branches: that also keeps the replay buffer where it is, which the compiler would copy for a gather in
    the same piece of code. Several devices, whose means are taken within `learn`, compute and drop it.
    """
    *_, means = jax.eval_shape(learn)
    other = (*unchanged, jax.tree.map(lambda mean: jnp.zeros(mean.shape, mean.dtype), means))
    if axis is None:
        return lax.cond(learns, learn, lambda: other)
    return jax.tree.map(lambda yes, no: jnp.where(learns, yes, no), learn(), other)


def collect_rollout(
    env: FunctionalEnv, start: RolloutState, key: Array, steps: int, act: Act, store: Store, axis: Axis
) -> tuple[RolloutState, Array, EnvMetrics, RecordedSteps, EpisodeSums]:
    """Step every environment `steps` times and `store` the transitions; also returns all observations, and what ended.

    `act` chooses actions from observations [N, ...] and random bits: one [N], and one for each output [N, K].
    """
    assert start.envs is not None, "the environments are compiled"
    count, outputs = len(start.envs.score), distributions.num_outputs(env.actions)
    bits = jax.random.bits(key, (steps, count, outputs + 3))
    keys = jax.random.wrap_key_data(bits[..., :2])
    action = jax.eval_shape(
        lambda x, b: distributions.to_env_action(env.actions, act(x, b[:, 2], b[:, 3:])),
        start.envs.observation,
        bits[0],
    )
    metrics = vector_env.init_metrics(env, start.envs, action)

    def step(carry: tuple[RolloutState, EnvMetrics], given: tuple[Array, Array]) -> tuple[Any, tuple[Any, ...]]:
        rollout, metrics = carry
        now = rollout.envs
        assert now is not None
        action = act(now.observation, given[0][:, 2], given[0][:, 3:])
        env_action = distributions.to_env_action(env.actions, action)
        after, metrics, outcome = vector_env.step(env, now, metrics, env_action, given[1])
        one = Transition(now.observation, action, outcome.reward, outcome.observation, outcome.terminated)
        ends = (outcome.reward, outcome.terminated, outcome.truncated, vector_env.recorded_facts(outcome))
        return (store(rollout._replace(envs=after), one, None), metrics), (now.observation, *ends)

    (after, metrics), (observations, reward, terminated, truncated, facts) = lax.scan(
        step, (start, metrics), (bits, keys)
    )
    assert after.envs is not None
    envs, recorded, ended = vector_env.count_episodes(after.envs, reward, terminated, truncated, facts, axis)
    return after._replace(envs=envs), observations, metrics, recorded, ended


def uniform(bits: Array) -> Array:
    """Random bits as numbers in [0, 1)."""
    return (bits >> 8).astype(jnp.float32) * 2.0**-24
