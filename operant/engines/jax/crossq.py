"""CrossQ (Bhatt et al., 2024): soft actor-critic whose critics need no target networks, in compiled code.

A gradient step shows the critics what was played, (s, a), and what follows, (s', a'), in one batch:
so both are normalized by the same statistics, and the values of what follows are a target as good
as those of a target network. The policy learns from critics with the running statistics.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, losses, nets, twin_critics
from operant.engines.jax.devices import Axis
from operant.engines.jax.optimizer import optimizer_hyper
from operant.engines.jax.replay import Transition
from operant.engines.jax.soft_actor_critic import Hyper, Networks, SoftActorCritic, Values
from operant.engines.jax.tracing import CRITIC, OPTIMIZER
from operant.engines.jax.twin_critics import RunningNorm
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import CrossQSpec


class CrossQ(SoftActorCritic):
    """The CrossQ learner; `Networks.target` are the running statistics of its critics, none where they are plain."""

    TRACED = (*OPTIMIZER, CRITIC, "agent.algorithm.gamma")

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, CrossQSpec)
        numbers = (settings.gamma, 0.0, spec.env.max_frame)
        return Hyper(optimizer_hyper(spec.agent.net.optimizer), *map(jnp.float32, numbers))

    @property
    def renorm(self) -> CrossQSpec:
        """The settings, which say how critics are renormalized."""
        assert isinstance(self.settings, CrossQSpec)
        return self.settings

    def init_critics(self, rng: np.random.Generator, inputs: nets.Inputs, outputs: int) -> nets.Params:
        layers = twin_critics.init(self.net, rng, inputs, outputs, self.settings.critic_hidden)
        return {"layers": layers, "norms": twin_critics.init_norms(layers) if self.renorm.batch_renorm else []}

    def init_target(self, critic: nets.Params) -> list[RunningNorm]:
        return twin_critics.init_statistics(critic["layers"]) if self.renorm.batch_renorm else []

    def critic_step(
        self, networks: Networks, batch: Transition, noise: Array, hyper: Hyper, lr_scale: Array, axis: Axis
    ) -> tuple[Networks, Array, Array]:
        """Descend the critics' errors towards r + gamma (E[Q(s', a')] - alpha E[log pi(a'|s')]), of the same pass."""
        output = nets.apply_mlp(self.net, networks.actor, batch.next_observation, self.dtype)
        if self.discrete:
            following, weight, next_logp = batch.next_observation, *self.probabilities(output)
        else:
            action, next_logp = distributions.tanh_gaussian_sample(output, noise)
            following, weight = self.critic_inputs(batch.next_observation, action), jnp.ones((len(action), 1))
        joint = jnp.concatenate([self.critic_inputs(batch.observation, batch.action), following])
        alpha = jnp.exp(networks.log_alpha)

        def loss(part: dict[str, nets.Params]) -> tuple[Array, tuple[Array, Array, list[RunningNorm]]]:
            values, found = self.learning_values(part["critic"], networks, joint, axis)
            now, after = jnp.split(values, 2, 1)
            next_q = (weight * self.reduced(lax.stop_gradient(after))).sum(-1)
            target = losses.q_target(batch.reward, batch.terminated, next_q - alpha * next_logp, hyper.gamma)
            q = self.taken_q(now, batch.action)
            value = losses.td_loss(q - target, self.settings.loss, batch.weight)
            return value, (q - target, jnp.stack([value, q.mean()]), found)

        statistics = networks.target
        networks, (error, metrics, found), norm = self.descend(networks, loss, hyper, lr_scale, axis)
        statistics = twin_critics.blend(statistics, found, jnp.float32(self.renorm.renorm_momentum))
        return networks._replace(target=statistics), error, jnp.append(metrics, norm)

    def learning_values(
        self, critic: nets.Params, networks: Networks, inputs: Array, axis: Axis
    ) -> tuple[Array, list[RunningNorm]]:
        """Both critics' outputs in the pass that learns, and the statistics of its batch."""
        if not self.renorm.batch_renorm:
            return twin_critics.values(self.net, critic["layers"], inputs, self.dtype), []
        widest = twin_critics.renorm_limits(networks.steps, self.renorm.renorm_warm_up)
        return twin_critics.renorm_values(self.net, critic, networks.target, inputs, widest, axis)

    def frozen_values(self, networks: Networks) -> Values:
        critic = networks.critic
        if not self.renorm.batch_renorm:
            return lambda inputs: twin_critics.values(self.net, critic["layers"], inputs, self.dtype)
        return lambda inputs: twin_critics.frozen_renorm_values(self.net, critic, networks.target, inputs)

    def move_target(self, networks: Networks, hyper: Hyper) -> Networks:
        return networks
