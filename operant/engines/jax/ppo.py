"""Proximal policy optimization (Schulman et al., 2017) in one compiled program, read top to bottom.

An update collects a rollout of `time_horizon` steps in every environment with the current policy, computes its
log-probabilities, values and advantages, and takes a few epochs of clipped gradient steps.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import losses, nets, normalize, vector_env
from operant.engines.jax.actor_critic import Samples, flat
from operant.engines.jax.devices import Axis, device_key, mean_over
from operant.engines.jax.learner import (
    HostRollout,
    LearnMetrics,
    LinearSchedule,
    OwnSchedule,
    Policy,
    TrainState,
    UpdateMetrics,
    build_schedule,
)
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.on_policy import OnPolicy
from operant.engines.jax.optimizer import Optimizer, OptimizerHyper, lr_fraction, optimizer_hyper
from operant.engines.jax.shuffle import shuffled
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.engines.jax.vector_env import Step, Truncations
from operant.envs.functional.env import FunctionalEnv
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


class Ppo(OnPolicy):
    """The PPO learner."""

    TRACED = (*OPTIMIZER, CRITIC, *(f"agent.algorithm.{name}" for name in TRACED))
    ON_HOST = True

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        self.optimizer = Optimizer(self.net.optimizer)

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

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        returns = normalize.init_return_stats(self.spec.env.num_envs)
        value_stats = normalize.init_stats(()) if self.settings.normalize_v_targets else None
        learner = LearnerState(self.optimizer.init(weights), returns, of_play, jnp.int32(0), value_stats)
        return TrainState(Policy(weights, obs_stats), learner, self.init_rollout(device_key(axis, of_envs)))

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
        samples, rollout, return_stats, value_stats = self.make_samples(state, steps, truncations, last, hyper, axis)
        frame = (state.learner.updates + 1).astype(jnp.float32) * self.frames
        params, opt_state, metrics, taken = self.learn(state, samples, keys[1], hyper, frame, axis)
        obs_stats = state.policy.obs_stats
        if obs_stats is not None:
            obs_stats = normalize.update(obs_stats, flat(steps.observation), axis)
        means: dict[str, Array] = dict(zip(METRICS, metrics, strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_fraction(hyper.optimizer, frame, hyper.budget)
        learner = LearnerState(opt_state, return_stats, keys[0], state.learner.updates + 1, value_stats)
        return TrainState(Policy(params, obs_stats), learner, rollout), LearnMetrics(means, jnp.int32(1), taken)

    def learn_on_host(
        self, state: TrainState, hyper: Hyper, played: HostRollout, learns: bool
    ) -> tuple[TrainState, LearnMetrics | None]:
        key, _, of_order = jax.random.split(state.learner.key, 3)
        nothing = jnp.zeros((*played.reward.shape, 0))
        steps = Step(*played[:6], nothing, {}, played.begun)
        truncations = Truncations(played.final, jnp.zeros(self.local, jnp.int32))
        return self.learn_from(state, steps, truncations, played.last, (key, of_order), hyper, None)

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

        def gradient_steps(given: Any, order: Array) -> tuple[Any, Array]:
            return lax.scan(gradient_step, given, order.reshape(-1, self.batch_rows))

        def no_steps(given: Any, order: Array) -> tuple[Any, Array]:
            return given, jnp.zeros((len(order) // self.batch_rows, len(METRICS)))

        def epoch(carry: Any, order: Array) -> tuple[Any, tuple[Array, Array]]:
            before, going = carry
            if self.settings.target_kl is None:
                after, metrics = gradient_steps(before, order)
                return (after, going), (metrics, jnp.ones(len(metrics)))
            # Lanes compute both branches, and take one.
            after, metrics = lax.cond(going, gradient_steps, no_steps, before, order)
            taken = jnp.full(len(metrics), going, jnp.float32)
            return (after, going & (metrics[-1, 3] <= hyper.target_kl)), (metrics, taken)

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
        output, value, _ = self.forward(params, obs_stats, batch)
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

    def update_counts(self) -> tuple[list[str], int]:
        settings, envs = self.settings, self.spec.env.num_envs
        updates = -(-self.spec.env.max_frame // self.frames)
        minibatch, epochs = settings.scaled(envs)
        each = epochs * (self.frames // minibatch)
        asked = settings.training_epoch, settings.minibatch_size
        share = self.batch_rows * self.spec.meta.devices
        whole = f", each of {share} whole sequences" if self.is_recurrent else ""
        lines = [
            f"{updates:,} updates x {self.frames:,} samples ({envs} envs x {settings.time_horizon} steps)"
            f" = {updates * self.frames:,} frames",
            f"each update: {epochs} epochs x {self.frames // minibatch} minibatches of {minibatch:,}{whole}"
            f" = {each} gradient steps, {updates * each:,} in all",
        ]
        if (epochs, minibatch) != asked:
            lines.append(
                f"auto_scale made that of {asked[0]} epochs x {self.frames // asked[1]} minibatches of {asked[1]:,};"
                " halve the learning rate whenever the gradient steps of an update double"
            )
        return lines, updates * each
