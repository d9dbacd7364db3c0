"""Proximal policy optimization (Schulman et al., 2017) in one compiled program, read top to bottom.

An update collects a rollout of `time_horizon` steps in every environment with the current policy, computes its
log-probabilities, values and advantages in one pass, and takes a few epochs of clipped gradient steps. That pass has
the shape of a minibatch, so that it compiles to the arithmetic of the gradient steps: the first ratio is exactly 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, normalize, vector_env
from operant.engines.jax.devices import Axis, device_key, mean_over
from operant.engines.jax.learner import (
    GREEDY,
    RANDOM,
    HostRollout,
    Learner,
    LearnMetrics,
    LinearSchedule,
    OwnSchedule,
    Policy,
    TrainState,
    UpdateMetrics,
    build_schedule,
)
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.optimizer import Optimizer, OptimizerHyper, lr_fraction, optimizer_hyper
from operant.engines.jax.shuffle import shuffled
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.engines.jax.vector_env import EnvMetrics, Step, Truncations, VecEnvState
from operant.envs.functional.env import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.ppo import PpoSpec

METRICS = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction", "optim/grad_norm")
TRACED = ("gamma", "lam", "clip_eps", "entropy_coef", "val_loss_coef", "clip_vloss", "target_kl")


class Hyper(NamedTuple):
    """The traced hyperparameters: lanes of one program may differ in them."""

    optimizer: OptimizerHyper
    gamma: Array
    lam: Array
    clip: LinearSchedule | OwnSchedule
    entropy: LinearSchedule | OwnSchedule
    value_coef: Array
    value_clip: Array
    target_kl: Array
    budget: Array


class LearnerState(NamedTuple):
    """What the learner keeps between updates, beside the policy."""

    opt_state: Any
    return_stats: RunningMeanStd
    key: Array
    updates: Array
    value_stats: RunningMeanStd | None


class RolloutState(NamedTuple):
    """The vector env, where it is compiled, and each environment's discounted return so far, which scales rewards."""

    envs: VecEnvState | None
    discounted_return: Array


class Samples(NamedTuple):
    """One rollout as rows, ready for minibatches.

    Log-probability, the critic's output and advantage are the columns of `estimates`: a minibatch gathers them at once.
    Where the critic learns standardised returns, its target is a fourth column; else it is the sum of two others.
    """

    observation: Array
    mask: Array | None
    action: Array
    estimates: Array

    @property
    def logp(self) -> Array:
        """Log-probabilities of the actions."""
        return self.estimates[..., 0]

    @property
    def value(self) -> Array:
        """Outputs of the critic before the update."""
        return self.estimates[..., 1]

    @property
    def advantage(self) -> Array:
        """Advantages of the actions."""
        return self.estimates[..., 2]

    @property
    def target(self) -> Array:
        """What the critic should give."""
        return self.estimates[..., 3] if self.estimates.shape[-1] > 3 else self.value + self.advantage


class Ppo(Learner):
    """The PPO learner; each device has `size` samples of a minibatch."""

    TRACED = (*OPTIMIZER, CRITIC, *(f"agent.algorithm.{name}" for name in TRACED))
    ON_HOST = True

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        spec = self.spec
        assert isinstance(spec.agent.algorithm, PpoSpec)
        self.settings, self.net = spec.agent.algorithm, spec.agent.net
        self.frames = spec.env.num_envs * self.settings.time_horizon
        self.local = spec.env.num_envs // spec.meta.devices
        minibatch, self.epochs = self.settings.scaled(spec.env.num_envs)
        self.size = minibatch // spec.meta.devices
        self.optimizer = Optimizer(self.net.optimizer)
        self.dtype = jnp.dtype(spec.meta.precision)
        self.storage = env.storage(spec.meta.storage)
        self.slots = vector_env.truncation_slots(env, self.settings.time_horizon)

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, PpoSpec)
        return Hyper(
            optimizer_hyper(spec.agent.net.optimizer),
            jnp.float32(settings.gamma),
            jnp.float32(settings.lam),
            build_schedule(settings.clip_eps),
            build_schedule(settings.entropy_coef),
            jnp.float32(settings.val_loss_coef),
            jnp.float32(settings.clip_vloss or 0.0),
            jnp.float32(settings.target_kl or 0.0),
            jnp.float32(spec.env.max_frame),
        )

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        actions, inputs = self.env.actions, nets.inputs_of(self.env.observation_shape)
        outputs = distributions.num_outputs(actions)
        discrete, hidden = isinstance(actions, Discrete), self.settings.critic_hidden
        return nets.init_actor_critic(self.net, rng, inputs, outputs, discrete, hidden)

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        returns = normalize.init_return_stats(self.spec.env.num_envs)
        value_stats = normalize.init_stats(()) if self.settings.normalize_v_targets else None
        learner = LearnerState(self.optimizer.init(weights), returns, of_play, jnp.int32(0), value_stats)
        envs = None if self.env.on_host else vector_env.reset(self.env, device_key(axis, of_envs), self.local)
        return TrainState(Policy(weights, obs_stats), learner, RolloutState(envs, jnp.zeros(self.local)))

    def update(self, state: TrainState, hyper: Hyper, axis: Axis) -> tuple[TrainState, UpdateMetrics]:
        """One rollout and the gradient steps on it."""
        key, of_play, of_order = jax.random.split(state.learner.key, 3)
        after, steps, truncations, env_metrics = self.rollout(state, device_key(axis, of_play))
        ends = (steps.reward, steps.terminated, steps.truncated)
        after, recorded, ended = vector_env.count_episodes(after, *ends, steps.facts, axis)
        keys = (key, device_key(axis, of_order))
        state, learned = self.learn_from(state, steps, truncations, after.observation, keys, hyper, axis)
        env_means, env_maxima = vector_env.reduce_metrics(env_metrics, self.settings.time_horizon, axis)
        state = state._replace(rollout=state.rollout._replace(envs=after))
        counts = (learned.learned, learned.gradient_steps)
        return state, UpdateMetrics(learned.means, env_means, env_maxima, *counts, *ended, recorded)

    def learn_from(
        self,
        state: TrainState,
        steps: Step,
        truncations: Truncations | None,
        last: Array,
        keys: tuple[Array, Array],
        hyper: Hyper,
        axis: Axis,
    ) -> tuple[TrainState, LearnMetrics]:
        """The gradient steps on a rollout, after which came `last`; `keys` are the learner's next and of orders."""
        samples, discounted_return, return_stats, value_stats = self.make_samples(
            state, steps, truncations, last, hyper, axis
        )
        frame = (state.learner.updates + 1).astype(jnp.float32) * self.frames
        params, opt_state, metrics, taken = self.learn(state, samples, keys[1], hyper, frame, axis)
        obs_stats = state.policy.obs_stats
        if obs_stats is not None:
            obs_stats = normalize.update(obs_stats, flat(steps.observation), axis)
        means: dict[str, Array] = dict(zip(METRICS, metrics, strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_fraction(hyper.optimizer, frame, hyper.budget)
        learner = LearnerState(opt_state, return_stats, keys[0], state.learner.updates + 1, value_stats)
        state = TrainState(Policy(params, obs_stats), learner, RolloutState(None, discounted_return))
        return state, LearnMetrics(means, jnp.int32(1), taken)

    def explore_on_host(
        self, policy: Policy, updates: Array, hyper: Hyper, observation: Array, mask: Array | None, key: Array
    ) -> Array:
        del updates, hyper  # the policy itself explores, as much at any time
        bits = jax.random.bits(key, (len(observation), distributions.num_outputs(self.env.actions)))
        return self.sample_action(policy, observation, mask, distributions.noise(self.env.actions, bits))

    def learn_on_host(
        self, state: TrainState, hyper: Hyper, played: HostRollout, learns: bool
    ) -> tuple[TrainState, LearnMetrics | None]:
        key, _, of_order = jax.random.split(state.learner.key, 3)
        nothing = jnp.zeros((*played.reward.shape, 0))
        steps = Step(*played[:6], nothing, {})
        truncations = Truncations(played.final, jnp.zeros(self.local, jnp.int32))
        return self.learn_from(state, steps, truncations, played.last, (key, of_order), hyper, None)

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
        first = start.observation.astype(self.storage)
        truncations = None if self.slots is None else vector_env.empty_truncations(self.slots, first)

        def step(carry: Any, given: tuple[Array, Array]) -> tuple[Any, Step]:
            now, env_metrics, truncations = carry
            action, env_action, mask = self.select_action(state.policy, now, given[0])
            after, env_metrics, outcome = vector_env.step(self.env, now, env_metrics, env_action, given[1])
            next_observation = jnp.zeros((len(action), 0))
            if truncations is None:
                next_observation = outcome.observation.astype(self.storage)
            else:
                truncations = vector_env.store_truncation(truncations, outcome)
            ends = (outcome.reward, outcome.terminated, outcome.truncated)
            observation = now.observation.astype(self.storage)
            facts = vector_env.recorded_facts(outcome)
            return (after, env_metrics, truncations), Step(observation, mask, action, *ends, next_observation, facts)

        (after, env_metrics, truncations), steps = lax.scan(step, (start, env_metrics, truncations), (noise, keys))
        return after, steps, truncations, env_metrics

    def select_action(self, policy: Policy, now: VecEnvState, noise: Array) -> tuple[Array, Array, Array | None]:
        """An action of every environment, in the policy's scale and in the environment's, and the action mask."""
        mask = jax.vmap(self.env.mask)(now.env_state) if self.env.masked else None
        action = self.sample_action(policy, now.observation, mask, noise)
        return action, distributions.to_env_action(self.env.actions, action), mask

    def sample_action(self, policy: Policy, observation: Array, mask: Array | None, noise: Array) -> Array:
        """Legal actions of observations, in the policy's scale."""
        output = distributions.mask_logits(self.policy_output(policy, observation.astype(self.storage)), mask)
        return distributions.sample(self.env.actions, output, noise, policy.params.get("log_std"))

    def policy_output(self, policy: Policy, observation: Array) -> Array:
        """Logits or means of stored observations."""
        inputs = self.normalize_obs(policy.obs_stats, observation)
        return nets.policy_output(self.net, policy.params, inputs, self.dtype)

    def normalize_obs(self, obs_stats: RunningMeanStd | None, observation: Array) -> Array:
        """Stored observations as inputs of the network."""
        return normalize.normalize_obs(obs_stats, observation.astype(jnp.float32), self.spec.env.clip_obs)

    def make_samples(
        self, state: TrainState, steps: Step, truncations: Truncations | None, last: Array, hyper: Hyper, axis: Axis
    ) -> tuple[Samples, Array, RunningMeanStd, RunningMeanStd | None]:
        """A rollout with its estimates; also the discounted returns, their statistics, and those of value targets."""
        policy, value_stats = state.policy, state.learner.value_stats
        logp, output = (part.reshape(steps.reward.shape) for part in self.evaluate_actions(policy, steps))
        next_output = self.next_values(policy, steps, truncations, last.astype(self.storage), output)
        value, next_value = (normalize.unstandardize(value_stats, part) for part in (output, next_output))
        reward, discounted_return, return_stats = self.rewards(state, steps, hyper, axis)
        advantage = losses.gae(reward, value, next_value, steps.terminated, steps.truncated, hyper.gamma, hyper.lam)
        estimates = [logp, output, advantage]
        if value_stats is not None:
            value_stats = normalize.update(value_stats, flat(advantage + value), axis)
            estimates.append(normalize.standardize(value_stats, advantage + value))
        mask = None if steps.mask is None else flat(steps.mask)
        samples = Samples(flat(steps.observation), mask, flat(steps.action), flat(jnp.stack(estimates, -1)))
        return samples, discounted_return, return_stats, value_stats

    def evaluate_actions(self, policy: Policy, steps: Step) -> tuple[Array, Array]:
        """Log-probability and value of every step [R], a minibatch at a time."""

        def evaluate(block: tuple[Array, Array | None, Array]) -> tuple[Array, Array]:
            observation, mask, action = block
            inputs = self.normalize_obs(policy.obs_stats, observation)
            output, value = nets.forward(self.net, policy.params, inputs, self.dtype)
            return self.log_prob(output, mask, action, policy.params.get("log_std"))[0], value

        blocks = jax.tree.map(
            lambda x: flat(x).reshape(-1, self.size, *x.shape[2:]), (steps.observation, steps.mask, steps.action)
        )
        logp, value = lax.map(evaluate, blocks)
        return logp.reshape(-1), value.reshape(-1)

    def log_prob(self, output: Array, mask: Array | None, action: Array, log_std: Array | None) -> tuple[Array, Array]:
        """Log-probability of each action among the legal ones, and the entropy."""
        legal = distributions.mask_logits(output, mask)
        return distributions.log_prob_and_entropy(self.env.actions, legal, action, log_std)

    def next_values(
        self, policy: Policy, steps: Step, truncations: Truncations | None, last: Array, value: Array
    ) -> Array:
        """The critic's value of each step's true next observation."""
        if truncations is None:
            inputs = self.normalize_obs(policy.obs_stats, flat(steps.next_observation))
            return nets.value(self.net, policy.params, inputs, self.dtype).reshape(value.shape)
        inputs = self.normalize_obs(policy.obs_stats, jnp.concatenate([last, flat(truncations.observation)]))
        values = nets.value(self.net, policy.params, inputs, self.dtype).reshape(1 + len(truncations.observation), -1)
        return vector_env.next_values(value, values[0], values[1:], steps.truncated)

    def rewards(self, state: TrainState, steps: Step, hyper: Hyper, axis: Axis) -> tuple[Array, Array, RunningMeanStd]:
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

    def learn(
        self, state: TrainState, samples: Samples, key: Array, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Any, Any, Array, Array]:
        """Epochs of minibatches: new weights, optimizer state, mean metrics [6], and the number of gradient steps."""
        orders = shuffled(key, self.epochs, len(samples.logp))
        lr_scale = lr_fraction(hyper.optimizer, frame, hyper.budget)

        def gradient_step(carry: Any, index: Array) -> tuple[Any, Array]:
            params, opt_state = carry
            batch = jax.tree.map(lambda x: x[index], samples)
            loss = partial(
                self.loss, obs_stats=state.policy.obs_stats, batch=batch, hyper=hyper, frame=frame, axis=axis
            )
            grads, metrics = jax.grad(loss, has_aux=True)(params)
            grads, metrics = mean_over(axis, (grads, metrics))
            params, opt_state, norm = self.optimizer.step(params, grads, opt_state, hyper.optimizer, lr_scale)
            return (params, opt_state), jnp.append(metrics, norm)

        def epoch(carry: Any, order: Array) -> tuple[Any, tuple[Array, Array]]:
            before, going = carry
            after, metrics = lax.scan(gradient_step, before, order.reshape(-1, self.size))
            if self.settings.target_kl is None:
                return (after, going), (metrics, jnp.ones(len(metrics)))
            kept = jax.tree.map(lambda new, old: jnp.where(going, new, old), after, before)
            taken = jnp.full(len(metrics), going, jnp.float32)
            return (kept, going & (metrics[-1, 3] <= hyper.target_kl)), (metrics, taken)

        start = (state.policy.params, state.learner.opt_state)
        ((params, opt_state), _), (metrics, taken) = lax.scan(epoch, (start, jnp.bool(True)), orders)
        means = jnp.tensordot(taken.reshape(-1), metrics.reshape(-1, metrics.shape[-1]), 1) / taken.sum()
        return params, opt_state, means, taken.sum().astype(jnp.int32)

    def loss(
        self, params: Any, obs_stats: RunningMeanStd | None, batch: Samples, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Array, Array]:
        """Policy loss + value loss - entropy bonus of one minibatch, and its metrics."""
        clip = hyper.clip.at(frame)
        advantage = batch.advantage
        if self.settings.normalize_advantages == "standardise":
            advantage = losses.standardize(advantage, axis)
        output, value = nets.forward(self.net, params, self.normalize_obs(obs_stats, batch.observation), self.dtype)
        logp, entropy = self.log_prob(output, batch.mask, batch.action, params.get("log_std"))
        policy_loss = losses.clipped_surrogate(logp, batch.logp, advantage, clip)
        if self.settings.clip_vloss is None:
            value_loss = losses.value_loss(value, batch.target, self.settings.val_loss)
        else:
            value_loss = losses.clipped_value_loss(value, batch.value, batch.target, hyper.value_clip)
        bonus = entropy.mean()
        kl, clipped = losses.approximate_kl(logp, batch.logp), losses.clip_fraction(logp, batch.logp, clip)
        total = policy_loss + hyper.value_coef * value_loss - hyper.entropy.at(frame) * bonus
        return total, jnp.stack([policy_loss, value_loss, bonus, kl, clipped])

    def outputs(self, policy: Policy, observation: Array) -> Array:
        return self.policy_output(policy, observation.astype(self.storage))

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, mode: Array
    ) -> Array:
        output = self.outputs(policy, observation)
        noise = distributions.noise(self.env.actions, jax.random.bits(key, output.shape))
        if isinstance(self.env.actions, Discrete):
            legal = distributions.mask_logits(jnp.where(mode == RANDOM, 0.0, output), mask)
            return distributions.sample(self.env.actions, legal, jnp.where(mode == GREEDY, 0.0, noise), None)
        drawn = output + jnp.exp(policy.params["log_std"]) * jnp.where(mode == GREEDY, 0.0, noise)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(mode == RANDOM, lax.erf(noise / 2**0.5), drawn)

    def probs_and_value(self, policy: Policy, observation: Array, mask: Array | None) -> tuple[Array, Array] | None:
        if not isinstance(self.env.actions, Discrete):
            return None
        inputs = self.normalize_obs(policy.obs_stats, observation.astype(self.storage))
        output, value = nets.forward(self.net, policy.params, inputs, self.dtype)
        return jax.nn.softmax(distributions.mask_logits(output, mask)), value

    def update_counts(self) -> tuple[list[str], int]:
        settings, envs = self.settings, self.spec.env.num_envs
        updates = -(-self.spec.env.max_frame // self.frames)
        minibatch, epochs = settings.scaled(envs)
        each = epochs * (self.frames // minibatch)
        asked = settings.training_epoch, settings.minibatch_size
        lines = [
            f"{updates:,} updates x {self.frames:,} samples ({envs} envs x {settings.time_horizon} steps)"
            f" = {updates * self.frames:,} frames",
            f"each update: {epochs} epochs x {self.frames // minibatch} minibatches of {minibatch:,}"
            f" = {each} gradient steps, {updates * each:,} in all",
        ]
        if (epochs, minibatch) != asked:
            lines.append(
                f"auto_scale made that of {asked[0]} epochs x {self.frames // asked[1]} minibatches of {asked[1]:,};"
                " halve the learning rate whenever the gradient steps of an update double"
            )
        return lines, updates * each


def flat(x: Array) -> Array:
    """Steps and environments [T, N, ...] as rows [T * N, ...]."""
    return x.reshape(-1, *x.shape[2:])
