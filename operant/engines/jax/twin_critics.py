"""Twin critics as one pytree of stacked layers, plain or with batch renormalization (Ioffe, 2017).

Batch normalization learns with the statistics of a batch and evaluates with running ones, so the two
disagree. Renormalization corrects what it learns with towards the running statistics, within
limits that begin at no correction and widen once those statistics can be trusted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import nets
from operant.engines.jax.devices import Axis, mean_over
from operant.spec.settings.nets import Net

EPSILON = 1e-3  # of variances: features that hardly vary are not blown up
WIDEST_SCALE, WIDEST_SHIFT = 3.0, 5.0  # limits of r and d in the end
SCALE_UNTIL, SHIFT_UNTIL = 8.0, 5.0  # when they are reached, in lengths of the warm-up


def init(
    net: Net, rng: np.random.Generator, inputs: nets.Inputs, outputs: int, widths: tuple[int, ...] | None
) -> list[nets.Layer]:
    """Fresh weights of two critics that share nothing but their inputs."""
    pair = [nets.init_mlp(net, rng, inputs, outputs, net.critic_gain, widths) for _ in range(2)]
    return jax.tree.map(lambda *both: np.stack(both), *pair)


def values(net: Net, critic: nets.Params, inputs: Array, dtype: Any) -> Array:
    """Both critics' outputs [2, B, K]."""
    return jax.vmap(lambda layers: nets.apply_mlp(net, layers, inputs, dtype))(critic)


def blend(slow: nets.Params, quick: nets.Params, share: Array) -> nets.Params:
    """`slow` moved by `share` of the way to `quick`."""
    return jax.tree.map(lambda old, new: old + share * (new - old), slow, quick)


class RunningNorm(NamedTuple):
    """Running mean and deviation of what enters a layer of both critics [2, 1, F]."""

    mean: Array
    deviation: Array


def init_norms(layers: list[nets.Layer]) -> list[nets.Layer]:
    """Scale and shift of what enters each layer."""
    shapes = [(2, 1, layer["weight"].shape[1]) for layer in layers]
    return [{"scale": np.ones(shape, np.float32), "shift": np.zeros(shape, np.float32)} for shape in shapes]


def init_statistics(layers: list[nets.Layer]) -> list[RunningNorm]:
    """Running statistics before the first batch."""
    shapes = [(2, 1, layer["weight"].shape[1]) for layer in layers]
    return [RunningNorm(jnp.zeros(shape), jnp.ones(shape)) for shape in shapes]


def renorm_limits(step: Array, warm_up: int) -> tuple[Array, Array]:
    """The limits r_max and d_max at a gradient step: 1 and 0 through the warm-up, then lines to their widest."""
    past = jnp.maximum(0.0, step.astype(jnp.float32) / warm_up - 1)
    scale = 1 + (WIDEST_SCALE - 1) * jnp.minimum(1.0, past / (SCALE_UNTIL - 1))
    return scale, WIDEST_SHIFT * jnp.minimum(1.0, past / (SHIFT_UNTIL - 1))


def renorm_values(
    net: Net, critic: nets.Params, before: list[RunningNorm], inputs: Array, widest: tuple[Array, Array], axis: Axis
) -> tuple[Array, list[RunningNorm]]:
    """Both critics' outputs in the pass that learns, and the statistics of its batch.

    With batch mean m and deviation s, running mean M and deviation S, a layer reads
    ((x - m) / s r + d) scale + shift, where r = s / S and d = (m - M) / S are limited and constant to the gradient.
    """
    x = jnp.broadcast_to(inputs, (2, *inputs.shape))
    found = []
    for k, (layer, norm, running) in enumerate(zip(critic["layers"], critic["norms"], before, strict=True)):
        x = x if k == 0 else nets.ACTIVATIONS[net.activation](x)
        mean = mean_over(axis, x.mean(1, keepdims=True))
        centred = x - mean
        deviation = jnp.sqrt(mean_over(axis, jnp.square(centred).mean(1, keepdims=True)) + EPSILON)
        batch = lax.stop_gradient(RunningNorm(mean, deviation))
        r = jnp.clip(batch.deviation / running.deviation, 1 / widest[0], widest[0])
        d = jnp.clip((batch.mean - running.mean) / running.deviation, -widest[1], widest[1])
        x = _product(layer, (centred * (r / deviation) + d) * norm["scale"] + norm["shift"])
        found.append(batch)
    return x, found


def frozen_renorm_values(net: Net, critic: nets.Params, running: list[RunningNorm], inputs: Array) -> Array:
    """Both critics' outputs with the running statistics, as a fixed function."""
    x = jnp.broadcast_to(inputs, (2, *inputs.shape))
    for k, (layer, norm, now) in enumerate(zip(critic["layers"], critic["norms"], running, strict=True)):
        x = x if k == 0 else nets.ACTIVATIONS[net.activation](x)
        x = _product(layer, (x - now.mean) * (norm["scale"] / now.deviation) + norm["shift"])
    return x


def _product(layer: nets.Layer, x: Array) -> Array:
    return jnp.einsum("kbi,kio->kbo", x, layer["weight"]) + layer["bias"][:, None]
