"""Soft actor-critic (Haarnoja et al., 2018) in one compiled program, for continuous and for discrete actions.

An update collects `training_frequency` frames and takes `training_iter` gradient steps, each of the
critics towards their target networks, then of the policy and of the temperature. Continuous actions
estimate E_a[Q] and E_a[log pi] by one draw; discrete ones compute them exactly (Christodoulou, 2019).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, normalize, replay
from operant.engines.jax.devices import Axis, mean_over
from operant.engines.jax.learner import GREEDY, RANDOM, Policy, TrainState
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.off_policy import Act, OffPolicy
from operant.engines.jax.optimizer import Optimizer, OptimizerHyper, lr_fraction, optimizer_hyper
from operant.engines.jax.replay import ReplayBuffer, Transition
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.envs.functional.env import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import SacSpec

METRICS = ("loss/q", "q/mean", "optim/grad_norm", "loss/policy", "policy/entropy", "policy/temperature")


class Hyper(NamedTuple):
    """The traced hyperparameters: lanes of one program may differ in them."""

    optimizer: OptimizerHyper
    gamma: Array
    polyak: Array
    budget: Array


class Networks(NamedTuple):
    """Everything that a gradient step changes: weights, temperature, and the optimizer states of all three."""

    actor: nets.Params
    critic: nets.Params
    target: nets.Params
    log_alpha: Array
    opt_states: tuple[Any, Any, Any]
    steps: Array


class LearnerState(NamedTuple):
    """What the learner keeps between updates, beside the policy."""

    critic: nets.Params
    target: nets.Params
    log_alpha: Array
    opt_states: tuple[Any, Any, Any]
    steps: Array
    key: Array
    updates: Array


class Sac(OffPolicy):
    """The SAC learner."""

    TRACED = (*OPTIMIZER, CRITIC, "agent.algorithm.gamma", "agent.algorithm.polyak")

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, SacSpec)
        self.settings = self.spec.agent.algorithm
        self.discrete = isinstance(env.actions, Discrete)
        self.count = distributions.num_outputs(env.actions)
        # The temperature is one number: gradient clipping and weight decay are for networks.
        plain = self.net.optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.alpha_optimizer = Optimizer(plain)
        largest = self.settings.discrete_entropy * math.log(self.count) if self.discrete else -float(self.count)
        self.target_entropy = self.settings.entropy_scale * largest

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, SacSpec)
        numbers = (settings.gamma, settings.polyak, spec.env.max_frame)
        return Hyper(optimizer_hyper(spec.agent.net.optimizer), *map(jnp.float32, numbers))

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        inputs = self.env.observation_shape[0]
        outputs, critic_inputs, critic_outputs = (
            (self.count, inputs, self.count) if self.discrete else (2 * self.count, inputs + self.count, 1)
        )
        actor = nets.init_mlp(self.net, rng, inputs, outputs, self.net.actor_gain)
        widths = self.settings.critic_hidden
        pair = [
            nets.init_mlp(self.net, rng, critic_inputs, critic_outputs, self.net.critic_gain, widths) for _ in range(2)
        ]
        return {"actor": actor, "critic": jax.tree.map(lambda *both: np.stack(both), *pair)}

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        log_alpha = jnp.float32(math.log(self.settings.temperature))
        opt_states = (
            self.optimizer.init({"actor": weights["actor"]}),
            self.optimizer.init({"critic": weights["critic"]}),
            self.alpha_optimizer.init({"log_alpha": log_alpha}),
        )
        target = jax.tree.map(jnp.array, weights["critic"])
        learner = LearnerState(weights["critic"], target, log_alpha, opt_states, jnp.int32(0), of_play, jnp.int32(0))
        return TrainState(Policy({"actor": weights["actor"]}, obs_stats), learner, self.init_rollout(of_envs, axis))

    def actor(self, policy: Policy, updates: Array, hyper: Hyper) -> Act:
        """Actions are uniform until `training_start`."""
        return partial(self.explore, policy, updates * self.frames < self.settings.training_start)

    def explore(self, policy: Policy, uniform: Array, observation: Array, chance: Array, bits: Array) -> Array:
        """Actions sampled from the policy, or uniform ones."""
        output = self.outputs(policy, observation)
        noise = distributions.noise(self.env.actions, bits)
        if self.discrete:
            return distributions.sample(self.env.actions, jnp.where(uniform, 0.0, output), noise, None)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(uniform, lax.erf(noise / 2**0.5), distributions.tanh_gaussian_sample(output, noise)[0])

    def gradient_steps(
        self,
        policy: Policy,
        learner: LearnerState,
        buffer: ReplayBuffer,
        key: Array,
        hyper: Hyper,
        number: Array,
        axis: Axis,
    ) -> tuple[nets.Params, LearnerState, dict[str, Array]]:
        frame = number.astype(jnp.float32) * self.frames
        start = Networks(policy.params["actor"], *learner[:5])
        end, metrics = self.learn(start, policy.obs_stats, buffer, key, hyper, frame, axis)
        means: dict[str, Array] = dict(zip(METRICS, metrics, strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_fraction(hyper.optimizer, frame, hyper.budget)
        return {"actor": end.actor}, LearnerState(*end[1:], learner.key, learner.updates), means

    def learn(
        self,
        start: Networks,
        obs_stats: RunningMeanStd | None,
        buffer: ReplayBuffer,
        key: Array,
        hyper: Hyper,
        frame: Array,
        axis: Axis,
    ) -> tuple[Networks, Array]:
        """`training_iter` gradient steps, and their mean metrics; those of the policy over its own steps."""
        lr_scale = lr_fraction(hyper.optimizer, frame, hyper.budget)
        draws = 2 * self.count + 1
        bits = jax.random.bits(key, (self.settings.training_iter, self.size, draws))

        def gradient_step(networks: Networks, given: tuple[Transition, Array]) -> tuple[Networks, tuple[Array, ...]]:
            batch, drawn = given
            batch = batch._replace(
                observation=self.normalize_obs(obs_stats, batch.observation),
                next_observation=self.normalize_obs(obs_stats, batch.next_observation),
            )
            noise = distributions.noise(self.env.actions, drawn)
            networks, of_critics = self.critic_step(networks, batch, noise[:, : self.count], hyper, lr_scale, axis)
            moved, of_policy = self.policy_step(networks, batch, noise[:, self.count :], hyper, lr_scale, axis)
            due = networks.steps % self.settings.policy_delay == 0
            if self.settings.policy_delay > 1:
                moved = jax.tree.map(lambda yes, no: jnp.where(due, yes, no), moved, networks)
            networks = moved
            target = jax.tree.map(
                lambda slow, quick: slow + hyper.polyak * (quick - slow), networks.target, networks.critic
            )
            return networks._replace(target=target), (of_critics, jnp.where(due, of_policy, 0.0), due)

        # All batches at once: a loop that reads the buffer would be given a copy of it.
        batches = replay.sample(buffer, bits[..., 0])
        networks, (of_critics, of_policy, due) = lax.scan(gradient_step, start, (batches, bits[..., 1:]))
        return networks, jnp.concatenate([of_critics.mean(0), of_policy.sum(0) / jnp.maximum(due.sum(), 1)])

    def critic_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array]:
        """Descend the critics' errors towards r + gamma (E[min_k Q'_k(s', a')] - alpha E[log pi(a'|s')])."""
        next_q, next_logp = self.expected_q_and_logp(networks.actor, networks.target, batch.next_observation, noise)
        bootstrap = next_q - jnp.exp(networks.log_alpha) * next_logp
        target = losses.q_target(batch.reward, batch.terminated, bootstrap, hyper.gamma)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, Array]:
            q = self.taken_q(part["critic"], batch.observation, batch.action)
            error = losses.td_loss(q - target, self.settings.loss)
            return error, jnp.stack([error, q.mean()])

        part = {"critic": networks.critic}
        grads, metrics = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        rates = hyper.optimizer._replace(lr=hyper.optimizer.critic_lr)
        part, opt_state, norm = self.optimizer.step(part, grads, networks.opt_states[1], rates, lr_scale)
        opt_states = (networks.opt_states[0], opt_state, networks.opt_states[2])
        networks = networks._replace(critic=part["critic"], opt_states=opt_states, steps=networks.steps + 1)
        return networks, jnp.append(metrics, norm)

    def policy_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array]:
        """Descend E[alpha log pi - min_k Q_k], then step the temperature towards the target entropy."""
        alpha = jnp.exp(networks.log_alpha)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array]]:
            q, logp = self.expected_q_and_logp(part["actor"], networks.critic, batch.observation, noise)
            value = losses.soft_policy_loss(q, logp, alpha)
            return value, (value, logp.mean())

        part = {"actor": networks.actor}
        grads, (value, logp) = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        part, of_actor, _ = self.optimizer.step(part, grads, networks.opt_states[0], hyper.optimizer, lr_scale)
        log_alpha, of_alpha = self.update_alpha(networks, logp, hyper, lr_scale)
        opt_states = (of_actor, networks.opt_states[1], of_alpha)
        moved = networks._replace(actor=part["actor"], log_alpha=log_alpha, opt_states=opt_states)
        return moved, jnp.stack([value, -logp, alpha])

    def update_alpha(self, networks: Networks, logp: Array, hyper: Hyper, lr_scale: Array) -> tuple[Array, Any]:
        """The log temperature after its own gradient step, within its bounds."""
        if not self.settings.learn_temperature:
            return networks.log_alpha, networks.opt_states[2]
        part = {"log_alpha": networks.log_alpha}
        grads = jax.grad(lambda part: losses.temperature_loss(part["log_alpha"], logp, self.target_entropy))(part)
        part, opt_state, _ = self.alpha_optimizer.step(part, grads, networks.opt_states[2], hyper.optimizer, lr_scale)
        least, most = self.settings.temperature_min, self.settings.temperature_max
        low = None if least is None else math.log(least)
        high = None if most is None else math.log(most)
        return jnp.clip(part["log_alpha"], low, high), opt_state

    def expected_q_and_logp(
        self, actor: nets.Params, critic: nets.Params, observation: Array, noise: Array
    ) -> tuple[Array, Array]:
        """E_a[min_k Q_k(s, a)] and E_a[log pi(a|s)], each [B], under the policy."""
        output = nets.apply_mlp(self.net, actor, observation, self.dtype)
        if self.discrete:
            log_p = jax.nn.log_softmax(output)
            p = jnp.exp(log_p)
            return (p * self.reduced(self.critic_values(critic, observation))).sum(-1), (p * log_p).sum(-1)
        action, logp = distributions.tanh_gaussian_sample(output, noise)
        return self.reduced(self.critic_values(critic, jnp.concatenate([observation, action], -1))[..., 0]), logp

    def reduced(self, values: Array) -> Array:
        """The values of both critics as one: the smaller, or their mean."""
        return values.min(0) if self.settings.critic_reduction == "min" else values.mean(0)

    def taken_q(self, critic: nets.Params, observation: Array, action: Array) -> Array:
        """Both critics' values [2, B] of the actions that were rollout."""
        if not self.discrete:
            return self.critic_values(critic, jnp.concatenate([observation, action], -1))[..., 0]
        chosen = jnp.arange(self.count) == action[:, None]
        return jnp.where(chosen, self.critic_values(critic, observation), 0.0).sum(-1)

    def critic_values(self, critic: nets.Params, inputs: Array) -> Array:
        """Both critics' outputs [2, B, K]."""
        return jax.vmap(lambda layers: nets.apply_mlp(self.net, layers, inputs, self.dtype))(critic)

    def outputs(self, policy: Policy, observation: Array) -> Array:
        inputs = self.normalize_obs(policy.obs_stats, observation)
        return nets.apply_mlp(self.net, policy.params["actor"], inputs, self.dtype)

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, mode: Array
    ) -> Array:
        output = self.outputs(policy, observation)
        bits = jax.random.bits(key, (len(observation), self.count))
        drawn = self.explore(policy, mode == RANDOM, observation, bits[:, 0], bits)
        best = jnp.argmax(output, -1).astype(jnp.int32) if self.discrete else jnp.tanh(output[:, : self.count])
        return jnp.where(mode == GREEDY, best, drawn)
