"""Deep Q-learning (Mnih et al., 2015) with the Double target, in one compiled program.

A round plays `training_frequency` frames epsilon-greedily, keeps them in a ring, and takes
`training_iter` gradient steps towards r + gamma Q'(s', a*). Before `training_start` a round's
gradient steps are computed all the same and dropped: a program has one shape.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import losses, nets, normalise, replay, worlds
from operant.engines.jax.devices import Axis, mean_over, own_key
from operant.engines.jax.learner import RANDOM, SAMPLED, Line, Policy, Report, State, left_of, line_of
from operant.engines.jax.normalise import Moments
from operant.engines.jax.off_policy import OffPolicy
from operant.engines.jax.optimise import Rates, rates_of
from operant.engines.jax.replay import Playing, Ring, Transition
from operant.engines.jax.tracing import OPTIMISER
from operant.envs.functional import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec

REPORTED = ("loss/q", "q/mean", "optim/grad_norm")


class Hyper(NamedTuple):
    """The traced numbers: lanes of one program may differ in them."""

    rates: Rates
    gamma: Array
    epsilon: Line
    polyak: Array
    budget: Array


class Mind(NamedTuple):
    """What learns, beside the policy itself."""

    optimiser: Any
    target: nets.Params
    key: Array
    update: Array


class Dqn(OffPolicy):
    """The learner."""

    TRACED = (*OPTIMISER, *(f"agent.algorithm.{name}" for name in ("gamma", "epsilon", "polyak")))

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, DqnSpec)
        assert isinstance(env.actions, Discrete), "what else there is has been refused"
        self.settings, self.count = self.spec.agent.algorithm, env.actions.n

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, DqnSpec)
        numbers = (settings.gamma, settings.polyak, spec.env.max_frame)
        gamma, polyak, budget = map(jnp.float32, numbers)
        return Hyper(rates_of(spec.agent.net.optimizer), gamma, line_of(settings.epsilon), polyak, budget)

    def weights(self, rng: np.random.Generator) -> nets.Params:
        return nets.q_network(self.net, rng, self.env.observation_shape[0], self.count)

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> State:
        of_worlds, of_play = jax.random.split(key)
        seen = normalise.fresh(self.env.observation_shape) if self.spec.env.normalize_obs else None
        target = jax.tree.map(jnp.array, weights)
        mind = Mind(self.optimiser.init(weights), target, of_play, jnp.int32(0))
        started = worlds.begin(self.env, own_key(axis, of_worlds), self.local)
        ring = replay.empty(self.env, started, self.capacity, self.storage)
        return State(Policy(weights, seen), mind, Playing(started, ring))

    def update(self, state: State, hyper: Hyper, axis: Axis) -> tuple[State, Report]:
        """One round of play and learning."""
        key, of_play, of_batches = jax.random.split(state.mind.key, 3)
        before = state.mind.update.astype(jnp.float32) * self.frames
        act = partial(self.explore, state.policy, hyper.epsilon.at(before))
        clip = self.spec.env.clip_reward
        played, seen, tally, recorded, ended = replay.play(
            self.env, state.worlds, own_key(axis, of_play), self.steps, act, clip, axis
        )
        moments = state.policy.seen
        if moments is not None:
            moments = normalise.learn(moments, seen.reshape(-1, *seen.shape[2:]), axis)
        policy, number = Policy(state.policy.params, moments), state.mind.update + 1
        learns = number * self.frames >= self.settings.training_start
        frame = number.astype(jnp.float32) * self.frames
        old = (policy.params, state.mind.optimiser, state.mind.target)
        new, reports = self.learn(policy, state.mind, played.ring, own_key(axis, of_batches), hyper, number, axis)
        params, memory, target = jax.tree.map(lambda yes, no: jnp.where(learns, yes, no), new, old)
        found, maxima = worlds.told(tally, self.steps, axis)
        means: dict[str, Array] = dict(zip(REPORTED, reports, strict=True))
        means["optim/lr"] = hyper.rates.lr * left_of(hyper.rates, frame, hyper.budget)
        means["explore/epsilon"] = hyper.epsilon.at(frame)
        means = {name: jnp.where(learns, value, 0.0) for name, value in means.items()}
        state = State(Policy(params, moments), Mind(memory, target, key, number), played)
        learnt = learns.astype(jnp.int32)
        return state, Report(means, found, maxima, learnt, learnt * self.settings.training_iter, *ended, recorded)

    def explore(self, policy: Policy, epsilon: Array, observation: Array, chance: Array, bits: Array) -> Array:
        """The best-valued action, or with probability `epsilon` a uniform one, decided per environment."""
        best = jnp.argmax(self.values(policy.params, policy.seen, observation), -1).astype(jnp.int32)
        return jnp.where(replay.share(chance) < epsilon, (bits[:, 0] % self.count).astype(jnp.int32), best)

    def values(self, params: nets.Params, seen: Moments | None, observation: Array) -> Array:
        """Action values of observations as they are kept."""
        inputs = normalise.scaled(seen, observation.astype(self.storage).astype(jnp.float32), self.spec.env.clip_obs)
        return nets.q_values(self.net, params, inputs, self.dtype)

    def learn(
        self, policy: Policy, mind: Mind, ring: Ring, key: Array, hyper: Hyper, number: Array, axis: Axis
    ) -> tuple[tuple[nets.Params, Any, nets.Params], Array]:
        """Weights, optimiser and target after `training_iter` gradient steps, and their mean reports."""
        left = left_of(hyper.rates, number.astype(jnp.float32) * self.frames, hyper.budget)

        def descend(carry: Any, bits: Array) -> tuple[Any, Array]:
            params, memory = carry
            batch = replay.sample(ring, bits)
            loss = partial(self.loss, target=mind.target, seen=policy.seen, batch=batch, gamma=hyper.gamma)
            grads, report = jax.grad(loss, has_aux=True)(params)
            grads, report = mean_over(axis, (grads, report))
            params, memory, norm = self.optimiser.step(params, grads, memory, hyper.rates, left)
            return (params, memory), jnp.append(report, norm)

        bits = jax.random.bits(key, (self.settings.training_iter, self.size))
        (params, memory), reports = lax.scan(descend, (policy.params, mind.optimiser), bits)
        return (params, memory, self.followed(mind.target, params, hyper.polyak, number)), reports.mean(0)

    def loss(
        self, params: nets.Params, target: nets.Params, seen: Moments | None, batch: Transition, gamma: Array
    ) -> tuple[Array, Array]:
        """The temporal-difference loss of a batch, and what to report of it."""
        among = jnp.arange(self.count)
        q = self.values(params, seen, batch.observation)
        chosen = jnp.where(among == batch.action[:, None], q, 0.0).sum(-1)
        after = self.values(target, seen, batch.successor)
        choosing = self.values(lax.stop_gradient(params), seen, batch.successor) if self.settings.double else after
        next_q = jnp.where(among == jnp.argmax(choosing, -1)[:, None], after, 0.0).sum(-1)
        error = chosen - losses.q_target(batch.reward, batch.terminated, next_q, gamma)
        loss = losses.td_loss(error, self.settings.loss)
        return loss, jnp.stack([loss, chosen.mean()])

    def followed(self, target: nets.Params, params: nets.Params, polyak: Array, number: Array) -> nets.Params:
        """The target network: blended at every round, or copied whenever `target_update` frames have passed.

        Which of both is the lane's own affair: `polyak` is traced.
        """
        every = self.settings.target_update
        due = (number * self.frames) // every > ((number - 1) * self.frames) // every

        def follow(slow: Array, quick: Array) -> Array:
            return jnp.where(polyak < 1, slow + polyak * (quick - slow), jnp.where(due, quick, slow))

        return jax.tree.map(follow, target, params)

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, way: Array
    ) -> Array:
        """Sampled play explores as much as training does at its end."""
        bits = jax.random.bits(key, (len(observation), 2))
        at_end = hyper.epsilon.at(hyper.budget)
        epsilon = jnp.where(way == RANDOM, 1.0, jnp.where(way == SAMPLED, at_end, 0.0))
        return self.explore(policy, epsilon, observation, bits[:, 0], bits[:, 1:])
