"""Recurrent networks: hidden layers, then gated recurrent ones, then the heads of actor and critic.

They learn from whole sequences, what one environment played in one update. Where an episode begins the hidden state
is zero, so nothing passes from one episode to the next, neither hidden state nor gradient. The state that an
environment brings into the rollout is a constant.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import nets
from operant.engines.jax.nets import Inputs, Params
from operant.spec.settings.nets import Memory, Net


def init_actor_critic(
    net: Net,
    rng: np.random.Generator,
    inputs: Inputs,
    outputs: int,
    discrete: bool,
    critic_hidden: tuple[int, ...] | None = None,
) -> dict[str, Params]:
    """A policy and a value, on recurrent layers of their own or shared ones; see `nets.init_actor_critic`."""
    units = _memory(net).units
    stream = init_stream(net, rng, inputs)
    actor = nets.init_linear(net, rng, units, outputs, net.actor_gain)
    if net.shared:
        critic = nets.init_linear(net, rng, units, 1, net.critic_gain)
        parts: dict[str, Params] = {"trunk": stream, "actor": {"head": actor}, "critic": {"head": critic}}
    else:
        own = net if critic_hidden is None else net.model_copy(update={"hidden": critic_hidden})
        of_critic = init_stream(own, rng, inputs)
        critic = nets.init_linear(net, rng, units, 1, net.critic_gain)
        parts = {"actor": {**stream, "head": actor}, "critic": {**of_critic, "head": critic}}
    return parts if discrete else {**parts, "log_std": np.full(outputs, net.log_std_init, np.float32)}


def init_stream(net: Net, rng: np.random.Generator, inputs: Inputs) -> dict[str, Params]:
    """The layers from observations to the recurrent layers' outputs."""
    layers, width = nets.layers_of(net).init(net, rng, inputs)
    units, count = _memory(net).units, _memory(net).layers
    gates = 4 if _memory(net).cell == "lstm" else 3
    cells = []
    for number in range(count):
        into = width if number == 0 else units
        given, kept = (_init_gates(net, rng, each, units, gates) for each in (into, units))
        cells.append({"input": given, "recurrent": kept})
    return {"layers": layers, "cells": cells}


def _init_gates(net: Net, rng: np.random.Generator, inputs: int, units: int, gates: int) -> nets.Layer:
    """Weights gate by gate and at a gain of 1, since gates saturate; torch's own start goes by the units alone."""
    if net.init == "torch":
        bound = units**-0.5
        weight, bias = rng.uniform(-bound, bound, (inputs, gates * units)), rng.uniform(-bound, bound, gates * units)
        return {"weight": weight.astype(np.float32), "bias": bias.astype(np.float32)}
    found = [nets.init_linear(net, rng, inputs, units, 1.0) for _ in range(gates)]
    return {name: np.concatenate([gate[name] for gate in found], -1) for name in ("weight", "bias")}


def hidden_width(net: Net) -> int:
    """Numbers in the hidden state of one episode: the policy's, and the value's where it has layers of its own."""
    return math.prod(_shape(net)) * (1 if net.shared else 2)


def forward(
    net: Net, params: Params, x: Array, begun: Array, hidden: Array, dtype: Any = jnp.float32
) -> tuple[Array, Array, Array]:
    """Policy outputs [B, T, K] and values [B, T] of sequences [B, T, ...], and the hidden states after each step.

    `begun` [B, T] marks the first observations of episodes; `hidden` [B, H] is the state before the first step.
    """
    if net.shared:
        features, states = apply_stream(net, params["trunk"], x, begun, hidden, dtype)
        of_value = features
    else:
        own, others = jnp.split(hidden, 2, -1)
        features, first = apply_stream(net, params["actor"], x, begun, own, dtype)
        of_value, second = apply_stream(net, params["critic"], x, begun, others, dtype)
        states = jnp.concatenate([first, second], -1)
    value = _head(params["critic"], of_value, dtype).squeeze(-1)
    return _head(params["actor"], features, dtype), value, states


def policy_output(
    net: Net, params: Params, x: Array, begun: Array, hidden: Array, dtype: Any = jnp.float32
) -> tuple[Array, Array]:
    """Policy outputs [B, K] of single observations [B, ...], and the hidden states after them.

    A value on layers of its own is not computed, and its part of the state stays as it is.
    """
    width = math.prod(_shape(net))
    stream = params["trunk"] if net.shared else params["actor"]
    features, states = apply_stream(net, stream, x[:, None], begun[:, None], hidden[:, :width], dtype)
    after = jnp.concatenate([states[:, 0], hidden[:, width:]], -1)
    return _head(params["actor"], features[:, 0], dtype), after


def apply_stream(net: Net, stream: Params, x: Array, begun: Array, hidden: Array, dtype: Any) -> tuple[Array, Array]:
    """Features [B, T, units] of sequences [B, T, ...], and the hidden states [B, T, W] after each step."""
    rows, steps = begun.shape
    features = nets.layers_of(net).apply(net, stream["layers"], x.reshape(-1, *x.shape[2:]), dtype)
    x = features.reshape(rows, steps, -1).swapaxes(0, 1)
    cell = lstm_cell if _memory(net).cell == "lstm" else gru_cell
    before = hidden.reshape(rows, *_shape(net))
    states = []
    for number, layer in enumerate(stream["cells"]):

        def step(state: Array, now: tuple[Array, Array], layer: nets.Layer = layer) -> tuple[Array, Array]:
            state = jnp.where(now[1][:, None, None], 0.0, state)
            given = nets.apply_linear(layer["recurrent"], state[:, 0], dtype).astype(jnp.float32)
            after = cell(now[0], given, state)
            return after, after

        # What comes of the inputs is one product for all steps.
        given = nets.apply_linear(layer["input"], x, dtype).astype(jnp.float32)
        _, found = lax.scan(step, before[:, :, number], (given, begun.T))
        states.append(found)
        x = found[:, :, 0]
    return x.swapaxes(0, 1), jnp.stack(states, 3).swapaxes(0, 1).reshape(rows, steps, -1)


def gru_cell(new: Array, old: Array, state: Array) -> Array:
    """h' = n + z (h - n), n = tanh(W x + r U h), with gates r and z (Cho et al., 2014); `state` [B, 1, units] is h."""
    (new_r, new_z, new_n), (old_r, old_z, old_n) = (jnp.split(part, 3, -1) for part in (new, old))
    reset, keep = jax.nn.sigmoid(new_r + old_r), jax.nn.sigmoid(new_z + old_z)
    candidate = jnp.tanh(new_n + reset * old_n)
    return (candidate + keep * (state[:, 0] - candidate))[:, None]


def lstm_cell(new: Array, old: Array, state: Array) -> Array:
    """c' = f c + i g and h' = o tanh(c') (Hochreiter and Schmidhuber, 1997); `state` [B, 2, units] is h and c."""
    into, forget, candidate, out = jnp.split(new + old, 4, -1)
    kept = jax.nn.sigmoid(forget) * state[:, 1] + jax.nn.sigmoid(into) * jnp.tanh(candidate)
    return jnp.stack([jax.nn.sigmoid(out) * jnp.tanh(kept), kept], 1)


def _head(part: Params, features: Array, dtype: Any) -> Array:
    return nets.apply_linear(part["head"], features, dtype).astype(jnp.float32)


def _memory(net: Net) -> Memory:
    assert net.memory is not None, "a network without recurrent layers is made by `nets`"
    return net.memory


def _shape(net: Net) -> tuple[int, int, int]:
    """Of one stream's hidden state: h and, of an LSTM, c; layers; units."""
    memory = _memory(net)
    return (2 if memory.cell == "lstm" else 1, memory.layers, memory.units)
