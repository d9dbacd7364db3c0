"""Losses and estimators as pure functions of arrays; each is held to the torch engine's in tests/oracle."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax.devices import Axis, mean_over, scan_unroll


def clipped_surrogate(logp: Array, old_logp: Array, advantage: Array, clip: Array) -> Array:
    """PPO's policy loss: -E[min(r A, clip(r, 1 - eps, 1 + eps) A)] (Schulman et al., 2017, eq. 7)."""
    ratio = jnp.exp(logp - old_logp)
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage).mean()


def value_loss(value: Array, target: Array, kind: str = "mse") -> Array:
    """Mean squared error, the PPO paper's L^VF; or the mean of Huber errors."""
    return td_loss(value - target, kind)


def clipped_value_loss(value: Array, old_value: Array, target: Array, clip: Array) -> Array:
    """The pessimistic value loss that keeps the new value within `clip` of the old one: `value_loss` where it is."""
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return jnp.maximum(jnp.square(value - target), jnp.square(near - target)).mean()


def approximate_kl(logp: Array, old_logp: Array) -> Array:
    """The estimator E[(r - 1) - log r] of KL(old || new): unbiased, never negative, low variance."""
    log_ratio = logp - old_logp
    return (jnp.exp(log_ratio) - 1 - log_ratio).mean()


def clip_fraction(logp: Array, old_logp: Array, clip: Array) -> Array:
    """Share of samples whose probability ratio lies outside the clip range."""
    return (jnp.abs(jnp.exp(logp - old_logp) - 1) > clip).astype(jnp.float32).mean()


def standardize(advantage: Array, axis: Axis = None) -> Array:
    """Zero mean and unit deviation over the minibatches of all devices together."""
    centred = advantage - mean_over(axis, advantage.mean())
    return centred / (jnp.sqrt(mean_over(axis, jnp.square(centred).mean())) + 1e-8)


def gae(
    reward: Array, value: Array, next_value: Array, terminated: Array, truncated: Array, gamma: Array, lam: Array
) -> Array:
    """Generalised advantage estimation (Schulman et al., 2016) over arrays [T, N].

    `next_value[t]` is the value of the true successor of step t: of the final observation where
    the episode ended, never of the next episode's first. Termination removes the bootstrap;
    termination and truncation both cut the sum, so nothing leaks from one episode to another.
    """
    delta = reward + gamma * jnp.where(terminated, 0.0, next_value) - value
    carry = jnp.where(terminated | truncated, 0.0, gamma * lam)

    def back(ahead: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        ahead = now[0] + now[1] * ahead
        return ahead, ahead

    return lax.scan(back, jnp.zeros_like(delta[0]), (delta, carry), reverse=True, unroll=scan_unroll(len(delta)))[1]


def q_target(reward: Array, terminated: Array, next_q: Array, gamma: Array) -> Array:
    """Target r + gamma (1 - terminated) Q'(s'); truncation does bootstrap."""
    return reward + gamma * jnp.where(terminated, 0.0, next_q)


def td_loss(error: Array, kind: str, weight: Array | None = None) -> Array:
    """Mean of Huber (delta 1) or squared errors, each scaled by its importance weight."""
    size = jnp.abs(error)
    each = jnp.square(error) if kind == "mse" else jnp.where(size < 1, 0.5 * jnp.square(error), size - 0.5)
    return (each if weight is None else each * weight).mean()


def soft_policy_loss(q: Array, logp: Array, alpha: Array) -> Array:
    """SAC's policy loss E[alpha log pi - min_k Q_k] (Haarnoja et al., 2018, eq. 7)."""
    return (alpha * logp - q).mean()


def temperature_loss(log_alpha: Array, logp: Array, target_entropy: float) -> Array:
    """-log(alpha) (E[log pi] + target entropy): its descent raises alpha while the entropy is too low."""
    return -log_alpha * (lax.stop_gradient(logp).mean() + target_entropy)


def smoothed_action(action: Array, noise: Array, deviation: Array, clip: Array) -> Array:
    """TD3's target action clip(a + clip(deviation noise, -c, c), -1, 1) (Fujimoto et al., 2018, eq. 14)."""
    return jnp.clip(action + jnp.clip(deviation * noise, -clip, clip), -1, 1)
