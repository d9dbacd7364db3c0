"""Deep Q-learning (Mnih et al., 2015) with the Double target, in one compiled program.

An update collects `training_frequency` frames epsilon-greedily into a replay buffer, and takes
`training_iter` gradient steps towards r + gamma Q'(s', a*).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import losses, nets, normalize
from operant.engines.jax.devices import Axis, mean_over
from operant.engines.jax.learner import (
    RANDOM,
    SAMPLED,
    LinearSchedule,
    OwnSchedule,
    Policy,
    TrainState,
    build_schedule,
)
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.off_policy import Act, OffPolicy, RolloutState, uniform
from operant.engines.jax.optimizer import OptimizerHyper, lr_fraction, optimizer_hyper
from operant.engines.jax.priorities import Priorities
from operant.engines.jax.replay import Transition
from operant.engines.jax.tracing import OPTIMIZER
from operant.envs.functional.env import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec

METRICS = ("loss/q", "q/mean", "optim/grad_norm")


class Hyper(NamedTuple):
    """The traced hyperparameters: lanes of one program may differ in them."""

    optimizer: OptimizerHyper
    gamma: Array
    epsilon: LinearSchedule | OwnSchedule
    polyak: Array
    budget: Array


class LearnerState(NamedTuple):
    """What the learner keeps between updates, beside the policy."""

    opt_state: Any
    target: nets.Params
    key: Array
    updates: Array


class Dqn(OffPolicy):
    """The DQN learner."""

    TRACED = (*OPTIMIZER, *(f"agent.algorithm.{name}" for name in ("gamma", "epsilon", "polyak")))

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
        return Hyper(optimizer_hyper(spec.agent.net.optimizer), gamma, build_schedule(settings.epsilon), polyak, budget)

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        return nets.init_q_network(self.net, rng, self.inputs, self.count)

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> TrainState:
        of_envs, of_play = jax.random.split(key)
        obs_stats = normalize.init_stats(self.env.observation_shape) if self.spec.env.normalize_obs else None
        target = jax.tree.map(jnp.array, weights)
        learner = LearnerState(self.optimizer.init(weights), target, of_play, jnp.int32(0))
        return TrainState(Policy(weights, obs_stats), learner, self.init_rollout(of_envs, axis))

    def actor(self, policy: Policy, updates: Array, hyper: Hyper) -> Act:
        return partial(self.explore, policy, hyper.epsilon.at(updates.astype(jnp.float32) * self.frames))

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

        def gradient_step(carry: Any, batch: Transition, further: Array | None) -> tuple[Any, Array, Array]:
            params, opt_state = carry
            loss = partial(self.loss, target=learner.target, obs_stats=policy.obs_stats, batch=batch, gamma=hyper.gamma)
            grads, (metrics, error) = jax.grad(loss, has_aux=True)(params)
            grads, metrics = mean_over(axis, (grads, metrics))
            params, opt_state, norm = self.optimizer.step(params, grads, opt_state, hyper.optimizer, lr_scale)
            return (params, opt_state), error, jnp.append(metrics, norm)

        bits, start = jax.random.bits(key, (self.iterations, self.size)), (policy.params, learner.opt_state)
        (params, opt_state), ranks, metrics = self.over_batches(gradient_step, start, rollout, bits, None, number)
        target = self.update_target(learner.target, params, hyper.polyak, number)
        means: dict[str, Array] = dict(zip(METRICS, metrics.mean(0), strict=True))
        means["optim/lr"] = hyper.optimizer.lr * lr_scale
        means["explore/epsilon"] = hyper.epsilon.at(frame)
        return params, learner._replace(opt_state=opt_state, target=target), ranks, means

    def explore(self, policy: Policy, epsilon: Array, observation: Array, chance: Array, bits: Array) -> Array:
        """The best-valued action, or with probability `epsilon` a uniform one, decided per environment."""
        best = jnp.argmax(self.q_values(policy.params, policy.obs_stats, observation), -1).astype(jnp.int32)
        return jnp.where(uniform(chance) < epsilon, (bits[:, 0] % self.count).astype(jnp.int32), best)

    def q_values(self, params: nets.Params, obs_stats: RunningMeanStd | None, observation: Array) -> Array:
        """Action values of observations as they are stored."""
        return nets.q_values(self.net, params, self.normalize_obs(obs_stats, observation), self.dtype)

    def loss(
        self,
        params: nets.Params,
        target: nets.Params,
        obs_stats: RunningMeanStd | None,
        batch: Transition,
        gamma: Array,
    ) -> tuple[Array, tuple[Array, Array]]:
        """The temporal-difference loss of a batch, its metrics, and the errors [B]."""
        among = jnp.arange(self.count)
        q = self.q_values(params, obs_stats, batch.observation)
        chosen = jnp.where(among == batch.action[:, None], q, 0.0).sum(-1)
        after = self.q_values(target, obs_stats, batch.next_observation)
        choosing = (
            self.q_values(lax.stop_gradient(params), obs_stats, batch.next_observation)
            if self.settings.double
            else after
        )
        next_q = jnp.where(among == jnp.argmax(choosing, -1)[:, None], after, 0.0).sum(-1)
        error = chosen - losses.q_target(batch.reward, batch.terminated, next_q, gamma)
        loss = losses.td_loss(error, self.settings.loss, batch.weight)
        return loss, (jnp.stack([loss, chosen.mean()]), error)

    def update_target(self, target: nets.Params, params: nets.Params, polyak: Array, number: Array) -> nets.Params:
        """The target network: blended at every update, or copied whenever `target_update` frames have passed.

        Which of the two is decided per lane: `polyak` is traced.
        """
        every = self.settings.target_update
        due = (number * self.frames) // every > ((number - 1) * self.frames) // every

        def blend(slow: Array, quick: Array) -> Array:
            return jnp.where(polyak < 1, slow + polyak * (quick - slow), jnp.where(due, quick, slow))

        return jax.tree.map(blend, target, params)

    def outputs(self, policy: Policy, observation: Array) -> Array:
        return self.q_values(policy.params, policy.obs_stats, observation)

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, mode: Array
    ) -> Array:
        """Sampled actions explore as much as training does at its end."""
        bits = jax.random.bits(key, (len(observation), 2))
        at_end = hyper.epsilon.at(hyper.budget)
        epsilon = jnp.where(mode == RANDOM, 1.0, jnp.where(mode == SAMPLED, at_end, 0.0))
        return self.explore(policy, epsilon, observation, bits[:, 0], bits[:, 1:])
