"""Soft actor-critic (Haarnoja et al., 2018) in one compiled program, for continuous and for discrete actions.

A round plays `training_frequency` frames and takes `training_iter` gradient steps, each of the
critics towards their slow copies, then of the policy and of the temperature. Continuous actions
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

from operant.engines.jax import losses, nets, normalise, policies, replay, worlds
from operant.engines.jax.devices import Axis, mean_over, own_key
from operant.engines.jax.learner import GREEDY, RANDOM, Policy, Report, State, left_of
from operant.engines.jax.normalise import Moments
from operant.engines.jax.off_policy import OffPolicy
from operant.engines.jax.optimise import Optimiser, Rates, rates_of
from operant.engines.jax.replay import Playing, Ring, Transition
from operant.engines.jax.tracing import CRITIC, OPTIMISER
from operant.envs.functional import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import SacSpec

REPORTED = ("loss/q", "q/mean", "optim/grad_norm", "loss/policy", "policy/entropy", "policy/temperature")


class Hyper(NamedTuple):
    """The traced numbers: lanes of one program may differ in them."""

    rates: Rates
    gamma: Array
    polyak: Array
    budget: Array


class Minds(NamedTuple):
    """Everything that a gradient step moves."""

    actor: nets.Params
    critic: nets.Params
    target: nets.Params
    log_alpha: Array
    memories: tuple[Any, Any, Any]
    steps: Array


class Mind(NamedTuple):
    """What learns, beside the policy itself."""

    critic: nets.Params
    target: nets.Params
    log_alpha: Array
    memories: tuple[Any, Any, Any]
    steps: Array
    key: Array
    update: Array


class Sac(OffPolicy):
    """The learner."""

    TRACED = (*OPTIMISER, CRITIC, "agent.algorithm.gamma", "agent.algorithm.polyak")

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, SacSpec)
        self.settings = self.spec.agent.algorithm
        self.discrete = isinstance(env.actions, Discrete)
        self.count = policies.outputs_of(env.actions)
        # One number needs neither limit nor decay: both are for networks.
        plain = self.net.optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.plain = Optimiser(plain)
        largest = self.settings.discrete_entropy * math.log(self.count) if self.discrete else -float(self.count)
        self.target_entropy = self.settings.entropy_scale * largest

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, SacSpec)
        numbers = (settings.gamma, settings.polyak, spec.env.max_frame)
        return Hyper(rates_of(spec.agent.net.optimizer), *map(jnp.float32, numbers))

    def weights(self, rng: np.random.Generator) -> nets.Params:
        inputs = self.env.observation_shape[0]
        outputs, asked, answers = (
            (self.count, inputs, self.count) if self.discrete else (2 * self.count, inputs + self.count, 1)
        )
        actor = nets.perceptron(self.net, rng, inputs, outputs, self.net.actor_gain)
        widths = self.settings.critic_hidden
        pair = [nets.perceptron(self.net, rng, asked, answers, self.net.critic_gain, widths) for _ in range(2)]
        return {"actor": actor, "critic": jax.tree.map(lambda *both: np.stack(both), *pair)}

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> State:
        of_worlds, of_play = jax.random.split(key)
        seen = normalise.fresh(self.env.observation_shape) if self.spec.env.normalize_obs else None
        log_alpha = jnp.float32(math.log(self.settings.temperature))
        memories = (
            self.optimiser.init({"actor": weights["actor"]}),
            self.optimiser.init({"critic": weights["critic"]}),
            self.plain.init({"log_alpha": log_alpha}),
        )
        target = jax.tree.map(jnp.array, weights["critic"])
        mind = Mind(weights["critic"], target, log_alpha, memories, jnp.int32(0), of_play, jnp.int32(0))
        started = worlds.begin(self.env, own_key(axis, of_worlds), self.local)
        ring = replay.empty(self.env, started, self.capacity, self.storage)
        return State(Policy({"actor": weights["actor"]}, seen), mind, Playing(started, ring))

    def update(self, state: State, hyper: Hyper, axis: Axis) -> tuple[State, Report]:
        """One round of play and learning; play is uniform until `training_start`."""
        key, of_play, of_batches = jax.random.split(state.mind.key, 3)
        number, mind = state.mind.update + 1, state.mind
        act = partial(self.explore, state.policy, (number - 1) * self.frames < self.settings.training_start)
        clip = self.spec.env.clip_reward
        played, seen, tally, recorded, ended = replay.play(
            self.env, state.worlds, own_key(axis, of_play), self.steps, act, clip, axis
        )
        moments = state.policy.seen
        if moments is not None:
            moments = normalise.learn(moments, seen.reshape(-1, *seen.shape[2:]), axis)
        learns = number * self.frames >= self.settings.training_start
        frame = number.astype(jnp.float32) * self.frames
        old = Minds(state.policy.params["actor"], mind.critic, mind.target, mind.log_alpha, mind.memories, mind.steps)
        new, reports = self.learn(old, moments, played.ring, own_key(axis, of_batches), hyper, frame, axis)
        kept: Minds = jax.tree.map(lambda yes, no: jnp.where(learns, yes, no), new, old)
        found, maxima = worlds.told(tally, self.steps, axis)
        means: dict[str, Array] = dict(zip(REPORTED, reports, strict=True))
        means["optim/lr"] = hyper.rates.lr * left_of(hyper.rates, frame, hyper.budget)
        means = {name: jnp.where(learns, value, 0.0) for name, value in means.items()}
        state = State(Policy({"actor": kept.actor}, moments), Mind(*kept[1:], key, number), played)
        learnt = learns.astype(jnp.int32)
        return state, Report(means, found, maxima, learnt, learnt * self.settings.training_iter, *ended, recorded)

    def explore(self, policy: Policy, uniform: Array, observation: Array, chance: Array, bits: Array) -> Array:
        """A draw of the policy, or a uniform one."""
        output = nets.headed(self.net, policy.params["actor"], self.see(policy.seen, observation), self.dtype)
        noise = policies.noise(self.env.actions, bits)
        if self.discrete:
            return policies.sample(self.env.actions, jnp.where(uniform, 0.0, output), noise, None)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(uniform, lax.erf(noise / 2**0.5), policies.squashed_sample(output, noise)[0])

    def see(self, seen: Moments | None, observation: Array) -> Array:
        """Observations as the networks take them."""
        kept = observation.astype(self.storage).astype(jnp.float32)
        return normalise.scaled(seen, kept, self.spec.env.clip_obs)

    def learn(
        self, start: Minds, seen: Moments | None, ring: Ring, key: Array, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Minds, Array]:
        """`training_iter` gradient steps, and their mean reports; those of the policy over its own steps."""
        left = left_of(hyper.rates, frame, hyper.budget)
        draws = 2 * self.count + 1
        bits = jax.random.bits(key, (self.settings.training_iter, self.size, draws))

        def descend(minds: Minds, drawn: Array) -> tuple[Minds, tuple[Array, Array, Array]]:
            batch = replay.sample(ring, drawn[:, 0])
            batch = batch._replace(
                observation=self.see(seen, batch.observation), successor=self.see(seen, batch.successor)
            )
            noise = policies.noise(self.env.actions, drawn[:, 1:])
            minds, of_critics = self.critic_step(minds, batch, noise[:, : self.count], hyper, left, axis)
            moved, of_policy = self.policy_step(minds, batch, noise[:, self.count :], hyper, left, axis)
            due = minds.steps % self.settings.policy_delay == 0
            minds = jax.tree.map(lambda yes, no: jnp.where(due, yes, no), moved, minds)
            target = jax.tree.map(lambda slow, quick: slow + hyper.polyak * (quick - slow), minds.target, minds.critic)
            return minds._replace(target=target), (of_critics, jnp.where(due, of_policy, 0.0), due)

        minds, (of_critics, of_policy, due) = lax.scan(descend, start, bits)
        return minds, jnp.concatenate([of_critics.mean(0), of_policy.sum(0) / jnp.maximum(due.sum(), 1)])

    def critic_step(
        self, minds: Minds, batch: Transition, noise: Array, hyper: Hyper, left: Array, axis: Axis
    ) -> tuple[Minds, Array]:
        """Descend the critics' squared errors towards r + gamma (E[min_k Q'_k(s', a')] - alpha E[log pi(a'|s')])."""
        next_q, next_logp = self.expect(minds.actor, minds.target, batch.successor, noise)
        bootstrap = next_q - jnp.exp(minds.log_alpha) * next_logp
        target = losses.q_target(batch.reward, batch.terminated, bootstrap, hyper.gamma)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, Array]:
            q = self.taken(part["critic"], batch.observation, batch.action)
            error = losses.td_loss(q - target, "mse")
            return error, jnp.stack([error, q.mean()])

        part = {"critic": minds.critic}
        grads, report = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        rates = hyper.rates._replace(lr=hyper.rates.critic_lr)
        part, memory, norm = self.optimiser.step(part, grads, minds.memories[1], rates, left)
        memories = (minds.memories[0], memory, minds.memories[2])
        minds = minds._replace(critic=part["critic"], memories=memories, steps=minds.steps + 1)
        return minds, jnp.append(report, norm)

    def policy_step(
        self, minds: Minds, batch: Transition, noise: Array, hyper: Hyper, left: Array, axis: Axis
    ) -> tuple[Minds, Array]:
        """Descend E[alpha log pi - min_k Q_k], then let the temperature follow the entropy."""
        alpha = jnp.exp(minds.log_alpha)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array]]:
            q, logp = self.expect(part["actor"], minds.critic, batch.observation, noise)
            value = losses.soft_policy_loss(q, logp, alpha)
            return value, (value, logp.mean())

        part = {"actor": minds.actor}
        grads, (value, logp) = mean_over(axis, jax.grad(loss, has_aux=True)(part))
        part, of_actor, _ = self.optimiser.step(part, grads, minds.memories[0], hyper.rates, left)
        log_alpha, of_alpha = self.heated(minds, logp, hyper, left)
        memories = (of_actor, minds.memories[1], of_alpha)
        moved = minds._replace(actor=part["actor"], log_alpha=log_alpha, memories=memories)
        return moved, jnp.stack([value, -logp, alpha])

    def heated(self, minds: Minds, logp: Array, hyper: Hyper, left: Array) -> tuple[Array, Any]:
        """The log temperature after its own step, within its bounds."""
        if not self.settings.learn_temperature:
            return minds.log_alpha, minds.memories[2]
        part = {"log_alpha": minds.log_alpha}
        grads = jax.grad(lambda part: losses.temperature_loss(part["log_alpha"], logp, self.target_entropy))(part)
        part, memory, _ = self.plain.step(part, grads, minds.memories[2], hyper.rates, left)
        least, most = self.settings.temperature_min, self.settings.temperature_max
        low = None if least is None else math.log(least)
        high = None if most is None else math.log(most)
        return jnp.clip(part["log_alpha"], low, high), memory

    def expect(self, actor: nets.Params, critic: nets.Params, observation: Array, noise: Array) -> tuple[Array, Array]:
        """E_a[min_k Q_k(s, a)] and E_a[log pi(a|s)], each [B], under the policy."""
        output = nets.headed(self.net, actor, observation, self.dtype)
        if self.discrete:
            log_p = jax.nn.log_softmax(output)
            p = jnp.exp(log_p)
            return (p * self.ask(critic, observation).min(0)).sum(-1), (p * log_p).sum(-1)
        action, logp = policies.squashed_sample(output, noise)
        return self.ask(critic, jnp.concatenate([observation, action], -1))[..., 0].min(0), logp

    def taken(self, critic: nets.Params, observation: Array, action: Array) -> Array:
        """Both critics' values [2, B] of actions that were played."""
        if not self.discrete:
            return self.ask(critic, jnp.concatenate([observation, action], -1))[..., 0]
        chosen = jnp.arange(self.count) == action[:, None]
        return jnp.where(chosen, self.ask(critic, observation), 0.0).sum(-1)

    def ask(self, critic: nets.Params, inputs: Array) -> Array:
        """Both critics' outputs [2, B, K]."""
        return jax.vmap(lambda layers: nets.headed(self.net, layers, inputs, self.dtype))(critic)

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, way: Array
    ) -> Array:
        output = nets.headed(self.net, policy.params["actor"], self.see(policy.seen, observation), self.dtype)
        bits = jax.random.bits(key, (len(observation), self.count))
        drawn = self.explore(policy, way == RANDOM, observation, bits[:, 0], bits)
        best = jnp.argmax(output, -1).astype(jnp.int32) if self.discrete else jnp.tanh(output[:, : self.count])
        return jnp.where(way == GREEDY, best, drawn)
