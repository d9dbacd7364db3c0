"""Soft actor-critic (Haarnoja et al., 2018): the critics learn towards slow copies of themselves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.engines.jax import losses, nets, twin_critics
from operant.engines.jax.devices import Axis
from operant.engines.jax.optimizer import optimizer_hyper
from operant.engines.jax.replay import Transition
from operant.engines.jax.soft_actor_critic import Hyper, Networks, SoftActorCritic, Values
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import SacSpec


class Sac(SoftActorCritic):
    """The SAC learner."""

    TRACED = (*OPTIMIZER, CRITIC, "agent.algorithm.gamma", "agent.algorithm.polyak")

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, SacSpec)
        numbers = (settings.gamma, settings.polyak, spec.env.max_frame)
        return Hyper(optimizer_hyper(spec.agent.net.optimizer), *map(jnp.float32, numbers))

    def init_critics(self, rng: np.random.Generator, inputs: nets.Inputs, outputs: int) -> nets.Params:
        return twin_critics.init(self.net, rng, inputs, outputs, self.settings.critic_hidden)

    def init_target(self, critic: nets.Params) -> nets.Params:
        return jax.tree.map(jnp.array, critic)

    def critic_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array, Array]:
        """Descend the critics' errors towards r + gamma (E[min_k Q'_k(s', a')] - alpha E[log pi(a'|s')])."""
        slow = self.values_of(networks.target)
        next_q, next_logp = self.expected_q_and_logp(networks.actor, slow, batch.next_observation, noise)
        bootstrap = next_q - jnp.exp(networks.log_alpha) * next_logp
        target = losses.q_target(batch.reward, batch.terminated, bootstrap, hyper.gamma)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array]]:
            values = self.values_of(part["critic"])(self.critic_inputs(batch.observation, batch.action))
            q = self.taken_q(values, batch.action)
            value = losses.td_loss(q - target, self.settings.loss, batch.weight)
            return value, (q - target, jnp.stack([value, q.mean()]))

        networks, (error, metrics), norm = self.descend(networks, loss, hyper, lr_scale, axis)
        return networks, error, jnp.append(metrics, norm)

    def values_of(self, critic: nets.Params) -> Values:
        """Critics as functions of their inputs."""
        return lambda inputs: twin_critics.values(self.net, critic, inputs, self.dtype)

    def frozen_values(self, networks: Networks) -> Values:
        return self.values_of(networks.critic)

    def move_target(self, networks: Networks, hyper: Hyper) -> Networks:
        return networks._replace(target=twin_critics.blend(networks.target, networks.critic, hyper.polyak))
