"""Twin delayed deterministic policy gradient (Fujimoto et al., 2018) in compiled code, for bounded continuous actions.

An update collects `training_frequency` frames with Gaussian exploration and takes `training_iter` gradient steps of
the critics; every `policy_delay`-th of them also moves the policy and the targets.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, normalize, twin_critics
from operant.engines.jax.devices import Axis, mean_over
from operant.engines.jax.learner import (
    GREEDY,
    RANDOM,
    LinearSchedule,
    OwnSchedule,
    Policy,
    TrainState,
    build_schedule,
)
from operant.engines.jax.off_policy import Act, OffPolicy, RolloutState
from operant.engines.jax.optimizer import OptimizerHyper, lr_fraction, optimizer_hyper
from operant.engines.jax.priorities import Priorities
from operant.engines.jax.replay import Transition
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.envs.functional.env import FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import Td3Spec

METRICS = ("loss/q", "q/mean", "optim/grad_norm", "loss/policy")
TRACED = ("gamma", "polyak", "exploration_noise", "target_noise", "target_noise_clip")


class Hyper(NamedTuple):
    """The traced hyperparameters: lanes of one program may differ in them."""

    optimizer: OptimizerHyper
    gamma: Array
    polyak: Array
    target_noise: Array
    target_noise_clip: Array
    budget: Array
    exploration: LinearSchedule | OwnSchedule


class Networks(NamedTuple):
    """Everything that a gradient step changes: weights, their slow copies, and the optimizer states of both."""

    actor: nets.Params
    critic: nets.Params
    target_actor: nets.Params
    target: nets.Params
    opt_states: tuple[Any, Any]
    steps: Array


class LearnerState(NamedTuple):
    """What the learner keeps between updates, beside the policy."""

    critic: nets.Params
    target_actor: nets.Params
    target: nets.Params
    opt_states: tuple[Any, Any]
    steps: Array
    key: Array
    updates: Array


class Td3(OffPolicy):
    """The TD3 learner."""

    TRACED = (*OPTIMIZER, CRITIC, *(f"agent.algorithm.{name}" for name in TRACED))

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, Td3Spec)
        self.settings, self.count = self.spec.agent.algorithm, distributions.num_outputs(env.actions)

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, Td3Spec)
        noise = (settings.target_noise, settings.target_noise_clip)
        numbers = [jnp.float32(each) for each in (settings.gamma, settings.polyak, *noise, spec.env.max_frame)]
        given: Any = (optimizer_hyper(spec.agent.net.optimizer), *numbers, build_schedule(settings.exploration_noise))
        return Hyper(*given)

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        inputs = self.inputs
        assert isinstance(inputs, int), "critics that read images and real actions are refused"
        actor = nets.init_mlp(self.net, rng, inputs, self.count, self.net.actor_gain)
        critic = twin_critics.init(self.net, rng, inputs + self.count, 1, self.settings.critic_hidden)
        return {"actor": actor, "critic": critic}

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        slow = jax.tree.map(jnp.array, weights)
        of_actor, of_critic = (self.optimizer.init({name: weights[name]}) for name in ("actor", "critic"))
        learner = LearnerState(
            weights["critic"], slow["actor"], slow["critic"], (of_actor, of_critic), jnp.int32(0), of_play, jnp.int32(0)
        )
        return TrainState(Policy({"actor": weights["actor"]}, obs_stats), learner, self.init_rollout(of_envs, axis))

    def actor(self, policy: Policy, updates: Array, hyper: Hyper) -> Act:
        """Actions are uniform until `training_start`."""
        deviation = hyper.exploration.at(updates.astype(jnp.float32) * self.frames)
        return partial(self.explore, policy, updates * self.frames < self.settings.training_start, deviation)

    def explore(
        self, policy: Policy, uniform: Array, deviation: Array, observation: Array, chance: Array, bits: Array
    ) -> Array:
        """The policy's actions with normal noise, or uniform ones."""
        noise = distributions.noise(self.env.actions, bits)
        drawn = jnp.clip(jnp.tanh(self.outputs(policy, observation)) + deviation * noise, -1, 1)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(uniform, lax.erf(noise / 2**0.5), drawn)

    def gradient_steps(
        self,
        policy: Policy,
        learner: LearnerState,
        rollout: RolloutState,
        key: Array,
        hyper: Hyper,
        number: Array,
        axis: Axis,
    ) -> tuple[nets.Params, LearnerState, Priorities | None, dict[str, Array]]:
        frame = number.astype(jnp.float32) * self.frames
        lr_scale = lr_fraction(hyper.optimizer, frame, hyper.budget)
        bits = jax.random.bits(key, (self.settings.training_iter, self.size, self.count + 1))

        def gradient_step(networks: Networks, batch: Transition, drawn: Any) -> tuple[Networks, Array, Any]:
            batch = batch._replace(
                observation=self.normalize_obs(policy.obs_stats, batch.observation),
                next_observation=self.normalize_obs(policy.obs_stats, batch.next_observation),
            )
            noise = distributions.noise(self.env.actions, drawn)
            networks, error, of_critics = self.critic_step(networks, batch, noise, hyper, lr_scale, axis)
            due = networks.steps % self.settings.policy_delay == 0
            step = lambda now: self.policy_step(now, batch, hyper, lr_scale, axis)  # noqa: E731
            networks, loss = lax.cond(due, step, lambda now: (now, jnp.float32(0)), networks)
            return networks, error, (of_critics, loss, due)

        start = Networks(policy.params["actor"], *learner[:5])
        end: Networks
        end, ranks, found = self.over_batches(gradient_step, start, rollout, bits[..., 0], bits[..., 1:], number)
        of_critics, of_policy, due = found
        metrics = jnp.append(of_critics.mean(0), of_policy.sum() / jnp.maximum(due.sum(), 1))
        means: dict[str, Array] = dict(zip(METRICS, metrics, strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_scale
        means["explore/noise"] = hyper.exploration.at(frame - self.frames)
        return {"actor": end.actor}, LearnerState(*end[1:], learner.key, learner.updates), ranks, means

    def critic_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array, Array]:
        """Descend both critics' errors towards r + gamma min_k Q'_k(s', a'), a' the target policy's smoothed action."""
        action = jnp.tanh(nets.apply_mlp(self.net, networks.target_actor, batch.next_observation, self.dtype))
        action = losses.smoothed_action(action, noise, hyper.target_noise, hyper.target_noise_clip)
        next_q = self.q_values(networks.target, batch.next_observation, action).min(0)
        target = losses.q_target(batch.reward, batch.terminated, next_q, hyper.gamma)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array]]:
            q = self.q_values(part["critic"], batch.observation, batch.action)
            value = losses.td_loss(q - target, self.settings.loss, batch.weight)
            return value, (q - target, jnp.stack([value, q.mean()]))

        part = {"critic": networks.critic}
        grads, (error, metrics) = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        rates = hyper.optimizer._replace(lr=hyper.optimizer.critic_lr)
        part, opt_state, norm = self.optimizer.step(part, grads, networks.opt_states[1], rates, lr_scale)
        opt_states = (networks.opt_states[0], opt_state)
        networks = networks._replace(critic=part["critic"], opt_states=opt_states, steps=networks.steps + 1)
        return networks, error, jnp.append(metrics, norm)

    def policy_step(
        self, networks: Networks, batch: Transition, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array]:
        """Ascend the first critic's value of the policy's own actions, then move all targets."""
        first = jax.tree.map(lambda both: both[0], networks.critic)

        def loss(part: dict[str, nets.Params]) -> Array:
            action = jnp.tanh(nets.apply_mlp(self.net, part["actor"], batch.observation, self.dtype))
            return -nets.apply_mlp(self.net, first, jnp.concatenate([batch.observation, action], -1), self.dtype).mean()

        part = {"actor": networks.actor}
        value, grads = mean_over(axis, jax.value_and_grad(loss)(part))
        part, opt_state, _ = self.optimizer.step(part, grads, networks.opt_states[0], hyper.optimizer, lr_scale)
        moved = networks._replace(
            actor=part["actor"],
            opt_states=(opt_state, networks.opt_states[1]),
            target=twin_critics.blend(networks.target, networks.critic, hyper.polyak),
            target_actor=twin_critics.blend(networks.target_actor, part["actor"], hyper.polyak),
        )
        return moved, value

    def q_values(self, critic: nets.Params, observation: Array, action: Array) -> Array:
        """Both critics' values [2, B]."""
        return twin_critics.values(self.net, critic, jnp.concatenate([observation, action], -1), self.dtype)[..., 0]

    def outputs(self, policy: Policy, observation: Array) -> Array:
        inputs = self.normalize_obs(policy.obs_stats, observation)
        return nets.apply_mlp(self.net, policy.params["actor"], inputs, self.dtype)

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, mode: Array
    ) -> Array:
        """Sampled actions explore as much as training does at its end."""
        bits = jax.random.bits(key, (len(observation), self.count))
        deviation = jnp.where(mode == GREEDY, 0.0, hyper.exploration.at(hyper.budget))
        return self.explore(policy, mode == RANDOM, deviation, observation, bits[:, 0], bits)
