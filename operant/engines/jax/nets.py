"""Networks as pytrees: layers and heads for policies, values and action values, initialized as the spec says."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.spec.settings.nets import Net

Layer = dict[str, Any]
Params = Any
Inputs = int | tuple[int, ...]  # of a network: the length of a vector, or the shape of an image

HIDDEN_GAIN = 2**0.5
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "leaky_relu": jax.nn.leaky_relu,
    "sigmoid": jax.nn.sigmoid,
}


def init_linear(net: Net, rng: np.random.Generator, inputs: int, outputs: int, gain: float) -> Layer:
    """A layer of weights [inputs, outputs] and a bias, drawn on the host: nothing need be compiled for it."""
    if net.init == "torch":
        bound = inputs**-0.5
        weight, bias = rng.uniform(-bound, bound, (inputs, outputs)), rng.uniform(-bound, bound, outputs)
    else:
        weight, bias = _start(net.init, rng, inputs, outputs, gain), np.zeros(outputs)
    return {"weight": weight.astype(np.float32), "bias": bias.astype(np.float32)}


def _start(kind: str, rng: np.random.Generator, inputs: int, outputs: int, gain: float) -> np.ndarray:
    shape = (inputs, outputs)
    if kind == "orthogonal":
        q, r = np.linalg.qr(rng.standard_normal((max(shape), min(shape))))
        q = q * np.sign(np.diag(r))
        return gain * (q if inputs >= outputs else q.T)
    # Glorot's and He's deviations; a uniform law of the same deviation is sqrt(3) times as wide.
    scaled = kind.startswith("xavier")
    deviation = gain * math.sqrt(2 / (inputs + outputs)) if scaled else math.sqrt(2 / inputs)
    if kind.endswith("uniform"):
        return rng.uniform(-1, 1, shape) * math.sqrt(3) * deviation
    return rng.standard_normal(shape) * deviation


def init_hidden(net: Net, rng: np.random.Generator, inputs: int, widths: tuple[int, ...]) -> list[Layer]:
    """The hidden layers."""
    return [init_linear(net, rng, before, after, HIDDEN_GAIN) for before, after in pairwise((inputs, *widths))]


class Layers(Protocol):
    """The layers before the heads; the settings class of a network names them, in its `LAYERS`."""

    def init(self, net: Any, rng: np.random.Generator, inputs: Any, /) -> tuple[list[Params], int]:
        """Fresh weights as a list of pytrees of numpy arrays, and the number of features.

        `inputs` is the length of a vector, or the shape of an image.
        """
        ...

    def apply(self, net: Any, layers: list[Params], x: Array, dtype: Any, /) -> Array:
        """The features [B, F] of observations [B, ...], computed in `dtype`; bytes of images are 0 to 255."""
        ...


class MlpLayers:
    """The hidden layers of a perceptron, which takes images as vectors."""

    def init(self, net: Net, rng: np.random.Generator, inputs: Inputs, /) -> tuple[list[Params], int]:
        length = inputs if isinstance(inputs, int) else math.prod(inputs)
        return init_hidden(net, rng, length, net.hidden), (length, *net.hidden)[-1]

    def apply(self, net: Net, layers: list[Params], x: Array, dtype: Any, /) -> Array:
        activate, x = ACTIVATIONS[net.activation], x.reshape(len(x), -1)
        for layer in layers:
            x = activate(apply_linear(layer, x, dtype))
        return x


MLP = MlpLayers()


def layers_of(net: Net) -> Layers:
    """The layers that the settings name."""
    return net.layers_of("jax")


def inputs_of(observation_shape: tuple[int, ...]) -> Inputs:
    """What a network is told of the observations that it reads."""
    return observation_shape[0] if len(observation_shape) == 1 else observation_shape


def init_mlp(
    net: Net, rng: np.random.Generator, inputs: Inputs, outputs: int, gain: float, widths: tuple[int, ...] | None = None
) -> list[Layer]:
    """The network's layers and a head; `widths` stand in for the hidden ones of the spec."""
    settings = net if widths is None else net.model_copy(update={"hidden": widths})
    layers, width = layers_of(net).init(settings, rng, inputs)
    return [*layers, init_linear(net, rng, width, outputs, gain)]


def init_actor_critic(
    net: Net,
    rng: np.random.Generator,
    inputs: Inputs,
    outputs: int,
    discrete: bool,
    critic_hidden: tuple[int, ...] | None = None,
) -> dict[str, Params]:
    """A policy and a value, on separate or shared hidden layers; continuous actions have a `log_std` beside them."""
    if net.shared:
        trunk, width = layers_of(net).init(net, rng, inputs)
        parts: dict[str, Params] = {
            "trunk": trunk,
            "actor": [init_linear(net, rng, width, outputs, net.actor_gain)],
            "critic": [init_linear(net, rng, width, 1, net.critic_gain)],
        }
    else:
        parts = {
            "trunk": [],
            "actor": init_mlp(net, rng, inputs, outputs, net.actor_gain),
            "critic": init_mlp(net, rng, inputs, 1, net.critic_gain, critic_hidden),
        }
    return parts if discrete else {**parts, "log_std": np.full(outputs, net.log_std_init, np.float32)}


def apply_hidden(net: Net, layers: list[Layer], x: Array, dtype: Any = jnp.float32) -> Array:
    """The layers before the heads, where there are any; the arithmetic is in `dtype`."""
    return layers_of(net).apply(net, layers, x, dtype) if layers else x


def apply_linear(layer: Layer, x: Array, dtype: Any = jnp.float32) -> Array:
    """x W + b; columns of x beyond the rows of W count for nothing."""
    weight, beyond = layer["weight"].astype(dtype), x.shape[-1] - len(layer["weight"])
    weight = jnp.pad(weight, ((0, beyond), (0, 0))) if beyond else weight
    return x.astype(dtype) @ weight + layer["bias"].astype(dtype)


def apply_mlp(net: Net, layers: list[Layer], x: Array, dtype: Any = jnp.float32) -> Array:
    """Hidden layers and the head, whose outputs are single precision always."""
    return apply_linear(layers[-1], apply_hidden(net, layers[:-1], x, dtype), dtype).astype(jnp.float32)


def policy_output(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Logits or means."""
    return apply_mlp(net, params["actor"], apply_hidden(net, params["trunk"], x, dtype), dtype)


def forward(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> tuple[Array, Array]:
    """Policy output and value of each observation."""
    features = apply_hidden(net, params["trunk"], x, dtype)
    value = apply_mlp(net, params["critic"], features, dtype).squeeze(-1)
    return apply_mlp(net, params["actor"], features, dtype), value


def value(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Value of each observation."""
    return apply_mlp(net, params["critic"], apply_hidden(net, params["trunk"], x, dtype), dtype).squeeze(-1)


def init_q_network(net: Net, rng: np.random.Generator, inputs: Inputs, actions: int) -> dict[str, Params]:
    """Action values; with `duelling` also a state value."""
    trunk, width = layers_of(net).init(net, rng, inputs)
    parts: dict[str, Params] = {
        "trunk": trunk,
        "advantage": init_linear(net, rng, width, actions, net.critic_gain),
    }
    return {**parts, "state": init_linear(net, rng, width, 1, net.critic_gain)} if net.duelling else parts


def q_values(net: Net, params: Params, x: Array, dtype: Any = jnp.float32) -> Array:
    """Value of every action; duelling, Q = V + A - mean(A) (Wang et al., 2016, eq. 9)."""
    features = apply_hidden(net, params["trunk"], x, dtype)
    advantage = apply_linear(params["advantage"], features, dtype).astype(jnp.float32)
    if "state" not in params:
        return advantage
    state = apply_linear(params["state"], features, dtype).astype(jnp.float32)
    return state + advantage - advantage.mean(-1, keepdims=True)


def num_params(params: Params) -> int:
    """How many numbers there are."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))
