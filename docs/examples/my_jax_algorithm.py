"""PPO with two clip ranges in one compiled program: a subclass of the built-in learner that changes its loss.

operant train my_spec.yaml -s engine=jax -s agent.algorithm.name=my_jax_algorithm:MyJaxPpo
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array
from operant.engines.jax import losses
from operant.engines.jax.devices import Axis
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.ppo import Hyper, Ppo, Samples
from operant.spec.fields import free
from operant.spec.settings.ppo import PpoSpec


class MyJaxPpoSettings(PpoSpec):
    """PPO whose ratio may rise further than it may fall; `clip_eps` is how far it may fall."""

    clip_high: float = free(default=0.3, gt=0, le=10, description="How far the probability ratio may rise.")


class MyJaxPpo(Ppo):
    """The learner. It reads `clip_high` from its settings, so sessions of one program all have the same."""

    SETTINGS = MyJaxPpoSettings

    def loss(
        self, params: Any, obs_stats: RunningMeanStd | None, batch: Samples, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Array, Array]:
        """Policy loss + value loss - entropy bonus of one minibatch, and its metrics."""
        low = hyper.clip.at(frame)
        advantage = losses.standardize(batch.advantage, axis)
        output, value, _ = self.forward(params, obs_stats, batch)
        logp, entropy = self.log_prob(output, batch.mask, batch.action, params.get("log_std"))
        ratio = jnp.exp(logp - batch.logp)
        clipped = jnp.clip(ratio, 1 - low, 1 + self.spec.agent.algorithm.clip_high)
        policy_loss = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
        value_loss = losses.value_loss(value, batch.target)
        bonus = entropy.mean()
        kl, outside = losses.approximate_kl(logp, batch.logp), losses.clip_fraction(logp, batch.logp, low)
        total = policy_loss + hyper.value_coef * value_loss - hyper.entropy.at(frame) * bonus
        return total, jnp.stack([policy_loss, value_loss, bonus, kl, outside])
