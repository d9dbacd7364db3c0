"""Rollouts of the current policy, and what is learned from them: log-probabilities, values and advantages.

Those are computed in one pass after the rollout. That pass has the shape of a minibatch, so that it compiles to the
arithmetic of the gradient steps: the first ratio is exactly 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, normalize, vector_env
from operant.engines.jax.actor_critic import ActorCritic, Samples, flat
from operant.engines.jax.devices import Axis
from operant.engines.jax.learner import Policy, TrainState
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.vector_env import EnvMetrics, Step, Truncations, VecEnvState
from operant.envs.functional.env import FunctionalEnv
from operant.spec.schema import Spec


class RolloutState(NamedTuple):
    """The vector env, where it is compiled, each environment's discounted return so far, which scales rewards,
    and the hidden states [N, H] of a recurrent network."""

    envs: VecEnvState | None
    discounted_return: Array
    hidden: Array | None = None


class OnPolicy(ActorCritic):
    """A learner of rollouts of its own policy (abstract).

    Each device has `size` samples of a minibatch, which are `batch_rows` rows.
    """

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        envs, devices, horizon = self.spec.env.num_envs, self.spec.meta.devices, self.settings.time_horizon
        self.frames = envs * horizon
        self.local = envs // devices
        minibatch, self.epochs = self.settings.scaled(envs)
        self.size = minibatch // devices
        self.batch_rows = self.size // horizon if self.is_recurrent else self.size
        self.slots = vector_env.truncation_slots(env, horizon)

    def init_rollout(self, key: Array) -> RolloutState:
        """Fresh episodes, where environments are compiled."""
        envs = None if self.env.on_host else vector_env.reset(self.env, key, self.local)
        return RolloutState(envs, jnp.zeros(self.local), self.init_hidden(self.local))

    def hidden_in(self, rollout: RolloutState) -> Array | None:
        return rollout.hidden

    def rollout(self, state: TrainState, key: Array) -> tuple[VecEnvState, Step, Truncations | None, EnvMetrics]:
        """Step every environment `time_horizon` times; all random numbers are drawn at once."""
        outputs = distributions.num_outputs(self.env.actions)
        bits = jax.random.bits(key, (self.settings.time_horizon, self.local, outputs + 2))
        noise = distributions.noise(self.env.actions, bits[..., 2:])
        # Random bits serve as keys: to split keys from others would cost as much again.
        keys = jax.random.wrap_key_data(bits[..., :2])
        start: VecEnvState = state.rollout.envs
        action = jax.eval_shape(partial(self.select_action, state.policy), start, noise[0])[1]
        env_metrics = vector_env.init_metrics(self.env, start, action)
        first = self.stored(start.observation)
        truncations = None if self.slots is None else vector_env.empty_truncations(self.slots, first)

        def step(carry: Any, given: tuple[Array, Array]) -> tuple[Any, Step]:
            now, env_metrics, truncations = carry
            action, env_action, mask = self.select_action(state.policy, now, given[0])
            after, env_metrics, outcome = vector_env.step(self.env, now, env_metrics, env_action, given[1])
            next_observation = self.stored(outcome.observation)
            if truncations is not None:
                truncations = vector_env.store_truncation(truncations, outcome.truncated, next_observation)
                next_observation = jnp.zeros((len(action), 0))
            ends = (outcome.reward, outcome.terminated, outcome.truncated)
            observation = self.stored(now.observation)
            facts = vector_env.recorded_facts(outcome)
            return (after, env_metrics, truncations), Step(observation, mask, action, *ends, next_observation, facts)

        (after, env_metrics, truncations), steps = lax.scan(step, (start, env_metrics, truncations), (noise, keys))
        return after, steps, truncations, env_metrics

    def select_action(self, policy: Policy, now: VecEnvState, noise: Array) -> tuple[Array, Array, Array | None]:
        """An action of every environment, in the policy's scale and in the environment's, and the action mask."""
        mask = jax.vmap(self.env.mask)(now.env_state) if self.env.masked else None
        action = self.sample_action(policy, self.outputs(policy, now.observation), mask, noise)
        return action, distributions.to_env_action(self.env.actions, action), mask

    def make_samples(
        self, state: TrainState, steps: Step, truncations: Truncations | None, last: Array, hyper: Any, axis: Axis
    ) -> tuple[Samples, RolloutState, RunningMeanStd, RunningMeanStd | None]:
        """A rollout with its estimates; also the rollout state after it, and statistics of returns and value targets.

        Environments are not in that state: who steps them has them.
        """
        policy, value_stats, hidden = state.policy, state.learner.value_stats, state.rollout.hidden
        logp, output, states = self.evaluate_actions(policy, steps, hidden)
        next_output = self.next_values(policy, steps, truncations, self.stored(last), output, states)
        value, next_value = (normalize.unstandardize(value_stats, part) for part in (output, next_output))
        reward, discounted_return, return_stats = self.rewards(state, steps, hyper, axis)
        advantage = losses.gae(reward, value, next_value, steps.terminated, steps.truncated, hyper.gamma, hyper.lam)
        estimates = [logp, output, advantage]
        if value_stats is not None:
            value_stats = normalize.update(value_stats, flat(advantage + value), axis)
            estimates.append(normalize.standardize(value_stats, advantage + value))
        samples = self.samples_of(steps, jnp.stack(estimates, -1), hidden)
        after = RolloutState(None, discounted_return, None if states is None else states[-1])
        return samples, after, return_stats, value_stats

    def samples_of(self, steps: Step, estimates: Any, hidden: Array | None) -> Samples:
        """A rollout as rows, with estimates if those are known; `hidden` are the hidden states before it."""
        begun = steps.begun if self.is_recurrent else None
        samples = Samples(steps.observation, steps.mask, steps.action, estimates, begun, None)
        return jax.tree.map(self.rows, samples)._replace(hidden=hidden)

    def evaluate_actions(
        self, policy: Policy, steps: Step, hidden: Array | None = None
    ) -> tuple[Array, Array, Array | None]:
        """Log-probability and value [T, N] of every step, and the hidden states after it; a minibatch at a time."""

        def evaluate(block: Samples) -> tuple[Array, Array, Array | None]:
            output, value, states = self.forward(policy.params, policy.obs_stats, block)
            return self.log_prob(output, block.mask, block.action, policy.params.get("log_std"))[0], value, states

        rows = self.samples_of(steps, None, hidden)
        blocks = jax.tree.map(lambda x: x.reshape(-1, self.batch_rows, *x.shape[1:]), rows)
        found = jax.tree.map(flat, lax.map(evaluate, blocks))
        return jax.tree.map(lambda x: self.grid(x, steps.action.shape[1]), found)

    def next_values(
        self,
        policy: Policy,
        steps: Step,
        truncations: Truncations | None,
        last: Array,
        value: Array,
        states: Array | None,
    ) -> Array:
        """The critic's value of each step's true next observation."""
        if truncations is None:
            inputs = self.normalize_obs(policy.obs_stats, flat(steps.next_observation))
            return nets.value(self.net, policy.params, inputs, self.dtype).reshape(value.shape)
        observations = jnp.concatenate([last[None], truncations.observation])
        if states is None:
            inputs = self.normalize_obs(policy.obs_stats, flat(observations))
            values = nets.value(self.net, policy.params, inputs, self.dtype)
        else:
            slots = len(truncations.observation)
            before = jnp.concatenate([states[-1:], vector_env.at_truncations(states, steps.truncated, slots)])
            begun, unused = jnp.zeros((before[..., 0].size, 1), bool), jnp.zeros(())
            shown = Samples(flat(observations)[:, None], None, unused, unused, begun, flat(before))
            values = self.forward(policy.params, policy.obs_stats, shown)[1]
        values = values.reshape(len(observations), -1)
        return vector_env.next_values(value, values[0], values[1:], steps.truncated)

    def rewards(self, state: TrainState, steps: Step, hyper: Any, axis: Axis) -> tuple[Array, Array, RunningMeanStd]:
        """Rewards as the learner takes them, the discounted returns so far, and the statistics of those."""
        reward, returns, stats = steps.reward, state.rollout.discounted_return, state.learner.return_stats
        reward = reward * self.spec.env.reward_scale
        if self.spec.env.normalize_reward:
            over = steps.terminated | steps.truncated
            returns, all_returns = normalize.discounted_returns(returns, reward, over, hyper.gamma)
            stats = normalize.update(stats, flat(all_returns), axis)
            reward = normalize.normalize_rewards(stats, reward)
        env = self.spec.env
        return normalize.clip_rewards(reward, env.normalize_reward, env.clip_reward), returns, stats
