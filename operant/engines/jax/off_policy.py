"""What the off-policy learners share: their sizes and optimizer, and the rollouts that fill their replay buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import distributions, replay, vector_env
from operant.engines.jax.devices import Axis
from operant.engines.jax.learner import Learner, RecordedSteps
from operant.engines.jax.optimizer import Optimizer
from operant.engines.jax.replay import ReplayBuffer, Transition
from operant.engines.jax.vector_env import EnvMetrics, EpisodeSums, VecEnvState
from operant.envs.functional.env import FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.off_policy import SacSpec

Act = Callable[[Array, Array, Array], Array]


class RolloutState(NamedTuple):
    """The vector env and the replay buffer."""

    envs: VecEnvState
    buffer: ReplayBuffer


class OffPolicy(Learner):
    """A learner with a replay buffer (abstract).

    A rollout has `steps` steps of every environment, the buffer holds `capacity` steps of each, and each
    device has `size` transitions of a batch.
    """

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        spec = self.spec
        memory, devices, settings = spec.agent.memory, spec.meta.devices, spec.agent.algorithm
        assert isinstance(settings, DqnSpec | SacSpec)
        assert memory is not None, "the schema gives every off-policy algorithm a memory"
        self.net, self.memory = spec.agent.net, memory
        self.start, self.iterations = settings.training_start, settings.training_iter
        self.frames = settings.training_frequency
        self.local = spec.env.num_envs // devices
        self.steps = self.frames // spec.env.num_envs
        self.capacity = memory.max_size // spec.env.num_envs
        self.size = memory.batch_size // devices
        self.optimizer = Optimizer(self.net.optimizer)
        self.dtype, self.storage = jnp.dtype(spec.meta.precision), jnp.dtype(spec.meta.storage)

    def update_counts(self) -> tuple[list[str], int]:
        batch = self.memory.batch_size
        steps = max(0, self.spec.env.max_frame - self.start) // self.frames * self.iterations
        ratio = self.iterations * batch / self.frames
        return [
            f"{steps:,} gradient steps of {batch} from frame {self.start:,} on,"
            f" {self.iterations} every {self.frames} frames",
            f"each transition is learned from about {ratio:g} times; replay of {self.memory.max_size:,} transitions",
        ], steps


def collect_rollout(
    env: FunctionalEnv, start: RolloutState, key: Array, steps: int, act: Act, clip: float | None, axis: Axis
) -> tuple[RolloutState, Array, EnvMetrics, RecordedSteps, EpisodeSums]:
    """Step every environment `steps` times and store the transitions; also returns all observations, and what ended.

    `act` chooses actions from observations [N, ...] and random bits: one [N], and one for each output [N, K].
    """
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
        (now, buffer), metrics = carry
        action = act(now.observation, given[0][:, 2], given[0][:, 3:])
        env_action = distributions.to_env_action(env.actions, action)
        after, metrics, outcome = vector_env.step(env, now, metrics, env_action, given[1])
        reward = outcome.reward if clip is None else jnp.clip(outcome.reward, -clip, clip)
        one = Transition(now.observation, action, reward, outcome.observation, outcome.terminated)
        ends = (outcome.reward, outcome.terminated, outcome.truncated, vector_env.recorded_facts(outcome))
        return (RolloutState(after, replay.add(buffer, one)), metrics), (now.observation, *ends)

    (after, metrics), (observations, reward, terminated, truncated, facts) = lax.scan(
        step, (start, metrics), (bits, keys)
    )
    envs, recorded, ended = vector_env.count_episodes(after.envs, reward, terminated, truncated, facts, axis)
    return RolloutState(envs, after.buffer), observations, metrics, recorded, ended


def uniform(bits: Array) -> Array:
    """Random bits as numbers in [0, 1)."""
    return (bits >> 8).astype(jnp.float32) * 2.0**-24
