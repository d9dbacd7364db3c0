"""What SAC and CrossQ share: a policy rewarded for its entropy, twin critics and the temperature, in compiled code.

An update collects `training_frequency` frames and takes `training_iter` gradient steps, each of the
critics, then of the policy and of the temperature. Continuous actions estimate E_a[Q] and E_a[log pi]
by one draw; discrete ones compute them exactly (Christodoulou, 2019). What the critics learn towards
is in the algorithms' own files.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, normalize
from operant.engines.jax.devices import Axis, mean_over
from operant.engines.jax.learner import GREEDY, RANDOM, Policy, TrainState
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.off_policy import Act, OffPolicy, RolloutState
from operant.engines.jax.optimizer import Optimizer, OptimizerHyper, lr_fraction
from operant.engines.jax.priorities import Priorities
from operant.engines.jax.replay import Transition
from operant.envs.functional.env import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import CrossQSpec, SacSpec

METRICS = ("loss/q", "q/mean", "optim/grad_norm", "loss/policy", "policy/entropy", "policy/temperature")


class Hyper(NamedTuple):
    """The traced hyperparameters: lanes of one program may differ in them."""

    optimizer: OptimizerHyper
    gamma: Array
    polyak: Array
    budget: Array


class Networks(NamedTuple):
    """Everything that a gradient step changes: weights, temperature, and the optimizer states of all three.

    `target` is what targets need beside the critics: slow copies of them, or their running statistics.
    """

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


Values = Callable[[Array], Array]  # both critics' outputs [2, B, K] of their inputs


class SoftActorCritic(OffPolicy):
    """The base of SAC and CrossQ (abstract); `count` is the number of actions, or of their dimensions."""

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, SacSpec | CrossQSpec)
        self.settings = self.spec.agent.algorithm
        self.discrete = isinstance(env.actions, Discrete)
        self.count = distributions.num_outputs(env.actions)
        # The temperature is one number: gradient clipping and weight decay are for networks.
        plain = self.net.optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.alpha_optimizer = Optimizer(plain)
        largest = self.settings.discrete_entropy * math.log(self.count) if self.discrete else -float(self.count)
        self.target_entropy = self.settings.entropy_scale * largest

    @abstractmethod
    def hyper(self, spec: Spec) -> Hyper: ...

    @abstractmethod
    def init_critics(self, rng: np.random.Generator, inputs: nets.Inputs, outputs: int) -> nets.Params:
        """Fresh weights of both critics."""

    @abstractmethod
    def init_target(self, critic: nets.Params) -> Any:
        """`Networks.target` before the first gradient step."""

    @abstractmethod
    def critic_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array, Array]:
        """Descend both critics' errors; returns those [2, B], and loss, mean value and gradient norm."""

    @abstractmethod
    def frozen_values(self, networks: Networks) -> Values:
        """The critics as the policy learns from them."""

    @abstractmethod
    def move_target(self, networks: Networks, hyper: Hyper) -> Networks:
        """The networks with their targets after a gradient step."""

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        inputs, outputs, of_critics = self.inputs, self.count, (self.inputs, self.count)
        if not self.discrete:
            assert isinstance(inputs, int), "critics that read images and real actions are refused"
            outputs, of_critics = 2 * self.count, (inputs + self.count, 1)
        actor = nets.init_mlp(self.net, rng, inputs, outputs, self.net.actor_gain)
        return {"actor": actor, "critic": self.init_critics(rng, *of_critics)}

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        log_alpha = jnp.float32(math.log(self.settings.temperature))
        opt_states = (
            self.optimizer.init({"actor": weights["actor"]}),
            self.optimizer.init({"critic": weights["critic"]}),
            self.alpha_optimizer.init({"log_alpha": log_alpha}),
        )
        target = self.init_target(weights["critic"])
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
        rollout: RolloutState,
        key: Array,
        hyper: Hyper,
        number: Array,
        axis: Axis,
    ) -> tuple[nets.Params, LearnerState, Priorities | None, dict[str, Array]]:
        lr_scale = lr_fraction(hyper.optimizer, number.astype(jnp.float32) * self.frames, hyper.budget)
        step = partial(self.gradient_step, obs_stats=policy.obs_stats, hyper=hyper, lr_scale=lr_scale, axis=axis)
        bits = jax.random.bits(key, (self.iterations, self.size, 2 * self.count + 1))
        start = Networks(policy.params["actor"], *learner[:5])
        end: Networks
        end, ranks, metrics = self.over_batches(step, start, rollout, bits[..., 0], bits[..., 1:], number)
        of_critics, of_policy, due = metrics
        # Those of the policy are means over its own steps.
        metrics = jnp.concatenate([of_critics.mean(0), of_policy.sum(0) / jnp.maximum(due.sum(), 1)])
        means: dict[str, Array] = dict(zip(METRICS, metrics, strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_scale
        return {"actor": end.actor}, LearnerState(*end[1:], learner.key, learner.updates), ranks, means

    def gradient_step(
        self,
        networks: Networks,
        batch: Transition,
        bits: Array | None,
        obs_stats: RunningMeanStd | None,
        hyper: Hyper,
        lr_scale: Array,
        axis: Axis,
    ) -> tuple[Networks, Array, tuple[Array, ...]]:
        """The networks after a step on one batch, the critics' errors, and metrics: the policy's only where `due`."""
        assert bits is not None, "every step has its own"
        batch = batch._replace(
            observation=self.normalize_obs(obs_stats, batch.observation),
            next_observation=self.normalize_obs(obs_stats, batch.next_observation),
        )
        noise = distributions.noise(self.env.actions, bits)
        networks, error, of_critics = self.critic_step(networks, batch, noise[:, : self.count], hyper, lr_scale, axis)
        due = networks.steps % self.settings.policy_delay == 0
        step = lambda now: self.policy_step(now, batch, noise[:, self.count :], hyper, lr_scale, axis)  # noqa: E731
        if self.settings.policy_delay == 1:
            networks, of_policy = step(networks)
        else:
            networks, of_policy = lax.cond(due, step, lambda now: (now, jnp.zeros(3)), networks)
        return self.move_target(networks, hyper), error, (of_critics, of_policy, due)

    def descend(
        self, networks: Networks, loss: Callable[..., tuple[Array, Any]], hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Any, Array]:
        """The networks after a step of the critics down `loss`, what else that returned, and the gradient's norm."""
        part = {"critic": networks.critic}
        grads, further = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        rates = hyper.optimizer._replace(lr=hyper.optimizer.critic_lr)
        part, opt_state, norm = self.optimizer.step(part, grads, networks.opt_states[1], rates, lr_scale)
        opt_states = (networks.opt_states[0], opt_state, networks.opt_states[2])
        networks = networks._replace(critic=part["critic"], opt_states=opt_states, steps=networks.steps + 1)
        return networks, further, norm

    def policy_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array]:
        """Descend E[alpha log pi - min_k Q_k], then step the temperature towards the target entropy."""
        alpha = jnp.exp(networks.log_alpha)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array]]:
            values = self.frozen_values(networks)
            q, logp = self.expected_q_and_logp(part["actor"], values, batch.observation, noise)
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
        self, actor: nets.Params, values: Values, observation: Array, noise: Array
    ) -> tuple[Array, Array]:
        """E_a[min_k Q_k(s, a)] and E_a[log pi(a|s)], each [B], under the policy."""
        output = nets.apply_mlp(self.net, actor, observation, self.dtype)
        if self.discrete:
            p, logp = self.probabilities(output)
            return (p * self.reduced(values(observation))).sum(-1), logp
        action, logp = distributions.tanh_gaussian_sample(output, noise)
        return self.reduced(values(jnp.concatenate([observation, action], -1))[..., 0]), logp

    def probabilities(self, output: Array) -> tuple[Array, Array]:
        """Probabilities [B, K] of discrete actions, and E_a[log pi(a|s)] [B]."""
        log_p = jax.nn.log_softmax(output)
        p = jnp.exp(log_p)
        return p, (p * log_p).sum(-1)

    def reduced(self, values: Array) -> Array:
        """The values of both critics as one: the smaller, or their mean."""
        return values.min(0) if self.settings.critic_reduction == "min" else values.mean(0)

    def critic_inputs(self, observation: Array, action: Array) -> Array:
        """What the critics read of actions that were taken."""
        return observation if self.discrete else jnp.concatenate([observation, action], -1)

    def taken_q(self, values: Array, action: Array) -> Array:
        """Both critics' values [2, B] of the actions that were taken, from their outputs [2, B, K]."""
        if not self.discrete:
            return values[..., 0]
        chosen = jnp.arange(self.count) == action[:, None]
        return jnp.where(chosen, values, 0.0).sum(-1)

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
