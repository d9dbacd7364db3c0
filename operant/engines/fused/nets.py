"""Networks as pytrees: perceptrons for policies, values and action values, initialised as the spec says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn import initializers

from operant.spec.nets import Net

Layer = dict[str, Array]
Params = Any

HIDDEN_GAIN = 2**0.5
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "leaky_relu": jax.nn.leaky_relu,
}


def linear(net: Net, key: Array, inputs: int, outputs: int, gain: float) -> Layer:
    """A layer of weights [inputs, outputs] and a bias."""
    weight_key, bias_key = jax.random.split(key)
    if net.init == "torch":
        bound = inputs**-0.5
        weight = jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound)
        return {"weight": weight, "bias": jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound)}
    return {"weight": _start(net, gain)(weight_key, (inputs, outputs)), "bias": jnp.zeros(outputs)}


def _start(net: Net, gain: float) -> Callable[..., Array]:
    kinds: dict[str, Callable[..., Array]] = {
        "orthogonal": initializers.orthogonal(gain),
        "xavier_uniform": initializers.variance_scaling(gain**2, "fan_avg", "uniform"),
        "xavier_normal": initializers.variance_scaling(gain**2, "fan_avg", "normal"),
        "kaiming_uniform": initializers.variance_scaling(2.0, "fan_in", "uniform"),
        "kaiming_normal": initializers.variance_scaling(2.0, "fan_in", "normal"),
    }
    return kinds[net.init]


def hidden(net: Net, key: Array, inputs: int, widths: tuple[int, ...]) -> list[Layer]:
    """The hidden layers."""
    keys = jax.random.split(key, max(len(widths), 1))
    sizes = pairwise((inputs, *widths))
    return [linear(net, k, before, after, HIDDEN_GAIN) for k, (before, after) in zip(keys, sizes, strict=False)]


def perceptron(
    net: Net, key: Array, inputs: int, outputs: int, gain: float, widths: tuple[int, ...] | None = None
) -> list[Layer]:
    """Hidden layers and a head; `widths` stand in for those of the spec."""
    widths = net.hidden if widths is None else widths
    body, head = jax.random.split(key)
    return [*hidden(net, body, inputs, widths), linear(net, head, (inputs, *widths)[-1], outputs, gain)]


def actor_critic(net: Net, key: Array, inputs: int, outputs: int, discrete: bool) -> Params:
    """A policy and a value, on separate or shared hidden layers; continuous actions have a `log_std` beside them."""
    trunk, actor, critic = jax.random.split(key, 3)
    width = (inputs, *net.hidden)[-1]
    if net.shared:
        parts: dict[str, Any] = {
            "trunk": hidden(net, trunk, inputs, net.hidden),
            "actor": [linear(net, actor, width, outputs, net.actor_gain)],
            "critic": [linear(net, critic, width, 1, net.critic_gain)],
        }
    else:
        parts = {
            "trunk": [],
            "actor": perceptron(net, actor, inputs, outputs, net.actor_gain),
            "critic": perceptron(net, critic, inputs, 1, net.critic_gain),
        }
    return parts if discrete else {**parts, "log_std": jnp.full(outputs, net.log_std_init)}


def through(net: Net, layers: list[Layer], x: Array, dtype: Any = jnp.float32) -> Array:
    """Hidden layers, each followed by the activation; the arithmetic is in `dtype`."""
    activate = ACTIVATIONS[net.activation]
    for layer in layers:
        x = activate(affine(layer, x, dtype))
    return x


def affine(layer: Layer, x: Array, dtype: Any = jnp.float32) -> Array:
    """x W + b."""
    return x.astype(dtype) @ layer["weight"].astype(dtype) + layer["bias"].astype(dtype)


def headed(net: Net, layers: list[Layer], x: Array, dtype: Any = jnp.float32) -> Array:
    """Hidden layers and the head, whose outputs are single precision always."""
    return affine(layers[-1], through(net, layers[:-1], x, dtype), dtype).astype(jnp.float32)


def policy_output(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Logits or means."""
    return headed(net, params["actor"], through(net, params["trunk"], x, dtype), dtype)


def judge(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> tuple[Array, Array]:
    """Policy output and value of each observation."""
    features = through(net, params["trunk"], x, dtype)
    value = headed(net, params["critic"], features, dtype).squeeze(-1)
    return headed(net, params["actor"], features, dtype), value


def value_of(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Value of each observation."""
    return headed(net, params["critic"], through(net, params["trunk"], x, dtype), dtype).squeeze(-1)


def q_network(net: Net, key: Array, inputs: int, actions: int) -> Params:
    """Action values; with `duelling` also a state value."""
    body, advantage, state = jax.random.split(key, 3)
    width = (inputs, *net.hidden)[-1]
    parts: dict[str, Any] = {
        "trunk": hidden(net, body, inputs, net.hidden),
        "advantage": linear(net, advantage, width, actions, net.critic_gain),
    }
    return {**parts, "state": linear(net, state, width, 1, net.critic_gain)} if net.duelling else parts


def q_values(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Value of every action; duelling, Q = V + A - mean(A) (Wang et al., 2016, eq. 9)."""
    features = through(net, params["trunk"], x, dtype)
    advantage = affine(params["advantage"], features, dtype).astype(jnp.float32)
    if "state" not in params:
        return advantage
    state = affine(params["state"], features, dtype).astype(jnp.float32)
    return state + advantage - advantage.mean(-1, keepdims=True)


def size(params: Params) -> int:
    """How many numbers there are."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))
