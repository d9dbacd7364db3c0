"""Action distributions: how a network's output becomes actions and log-probabilities.

A policy's continuous actions are in [-1, 1] (unbounded ones as they are); `to_env_action` rescales them to the
bounds of the environment, as the torch engine does.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.envs.functional.env import Continuous, Discrete

LOG_2PI = math.log(2 * math.pi)
LOG_STD_RANGE = (-20.0, 2.0)  # of deviations that a network gives: wider ones overflow or never explore
MASKED_LOGIT = -1e9  # logit of a masked action: its probability is exactly 0, and 0 log 0 stays 0 where -inf gives NaN

Actions = Discrete | Continuous


def num_outputs(actions: Actions) -> int:
    """Number of outputs of the policy head."""
    return actions.n if isinstance(actions, Discrete) else math.prod(actions.shape)


def to_env_action(actions: Actions, action: Array) -> Array:
    """A policy's actions [N, ...] in the scale and shape of the environment."""
    if isinstance(actions, Discrete):
        return action
    shaped = action.reshape(len(action), *actions.shape)
    if not (math.isfinite(actions.low) and math.isfinite(actions.high)):
        return shaped
    middle, half = (actions.high + actions.low) / 2, (actions.high - actions.low) / 2
    return jnp.clip(shaped, -1.0, 1.0) * half + middle


def mask_logits(output: Array, mask: Array | None) -> Array:
    """Logits with those of masked actions so low that they have no probability."""
    return output if mask is None else jnp.where(mask, output, MASKED_LOGIT)


def noise(actions: Actions, bits: Array) -> Array:
    """Noise for sampling, from 32 random bits each: Gumbel for discrete actions, normal for continuous ones."""
    # In the middles of 2^23 equal parts of (0, 1): never an end, where both would be infinite.
    uniform = ((bits >> 9).astype(jnp.float32) + 0.5) * 2.0**-23
    if isinstance(actions, Discrete):
        return -jnp.log(-jnp.log(uniform))
    return math.sqrt(2) * lax.erf_inv(2 * uniform - 1)


def sample(actions: Actions, output: Array, noise: Array, log_std: Array | None) -> Array:
    """The actions that these outputs and this noise give; discrete ones by the Gumbel-max trick."""
    if isinstance(actions, Discrete):
        return jnp.argmax(output + noise, -1).astype(jnp.int32)
    assert log_std is not None, "a Gaussian policy has a deviation"
    return output + jnp.exp(log_std) * noise


def greedy(actions: Actions, output: Array) -> Array:
    """The most probable actions."""
    return jnp.argmax(output, -1).astype(jnp.int32) if isinstance(actions, Discrete) else output


def log_prob_and_entropy(actions: Actions, output: Array, action: Array, log_std: Array | None) -> tuple[Array, Array]:
    """Log-probability of each action, and the entropy of each distribution."""
    if isinstance(actions, Discrete):
        return categorical_terms(output, action)
    assert log_std is not None, "a Gaussian policy has a deviation"
    return gaussian_terms(output, log_std, action)


def _categorical(logits: Array, action: Array) -> tuple[Array, Array]:
    log_p = jax.nn.log_softmax(logits)
    # Not by index: the gradient of that scatters row by row.
    chosen = jnp.where(jnp.arange(logits.shape[-1]) == action[..., None], log_p, 0.0).sum(-1)
    return chosen, -(jnp.exp(log_p) * log_p).sum(-1)


@jax.custom_vjp
def categorical_terms(logits: Array, action: Array) -> tuple[Array, Array]:
    """log p(a) and H(p) of softmax(logits).

    The gradient computes them afresh: a forward pass that kept anything for it would be compiled
    otherwise than one without, and PPO's first ratio would be off by a rounding.
    """
    return _categorical(logits, action)


def _forward(logits: Array, action: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    return categorical_terms(logits, action), (logits, action)


def _backward(kept: tuple[Array, Array], slope: tuple[Array, Array]) -> tuple[Array, None]:
    logits, action = lax.optimization_barrier(kept)
    return jax.vjp(lambda x: _categorical(x, action), logits)[1](slope)[0], None


categorical_terms.defvjp(_forward, _backward)


def gaussian_terms(mean: Array, log_std: Array, action: Array) -> tuple[Array, Array]:
    """log N(a; mean, exp(log_std)^2) summed over dimensions, and the entropy."""
    z = (action - mean) * jnp.exp(-log_std)
    log_p = (-0.5 * jnp.square(z) - log_std - 0.5 * LOG_2PI).sum(-1)
    entropy = (log_std + 0.5 + 0.5 * LOG_2PI).sum(-1)
    return log_p, jnp.broadcast_to(entropy, log_p.shape)


def tanh_gaussian_sample(output: Array, noise: Array) -> tuple[Array, Array]:
    """a = tanh(u) for u = mean + std noise, and log p(a) = log N(u) - sum log(1 - tanh(u)^2).

    The last logarithm is taken as 2 (log 2 - u - softplus(-2u)): equal, and finite where tanh(u)
    rounds to 1. Outputs [..., 2K] are means and log deviations.
    """
    mean, raw = jnp.split(output, 2, -1)
    log_std = jnp.clip(raw, *LOG_STD_RANGE)
    u = mean + jnp.exp(log_std) * noise
    log_slope = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))
    log_p = -0.5 * jnp.square(noise) - log_std - 0.5 * LOG_2PI - log_slope
    return jnp.tanh(u), log_p.sum(-1)
