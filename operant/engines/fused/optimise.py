"""Optimiser steps on pytrees, with the arithmetic of torch's optimisers of the same names.

Learning rates, limits and decays are traced numbers, so that settings which differ only in them
share one compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from operant.spec.optimizers import OptimizerSpec

Params = Any
KNOWN = ("adam", "adamw", "rmsprop", "sgd")


class Rates(NamedTuple):
    """The traced numbers of an optimiser."""

    lr: Array
    critic_lr: Array
    end_fraction: Array
    limit: Array
    decay: Array


def rates_of(spec: OptimizerSpec) -> Rates:
    """Those of a spec."""
    limit = jnp.inf if spec.clip_grad_norm is None else spec.clip_grad_norm
    numbers = (spec.lr, spec.critic_lr or spec.lr, spec.lr_end_fraction, limit, spec.weight_decay)
    return Rates(*map(jnp.float32, numbers))


class Optimiser:
    """How gradients become steps: a group's own learning rate, the norm limited for all together or each apart.

    A group is a part of the parameters under one name; `critic` learns at the critic's rate.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self._spec = spec
        self._rule = _rule(spec)

    def init(self, params: Params) -> Any:
        """The memory of an optimiser that has not moved yet."""
        return self._rule.init(params)

    def step(
        self, params: dict[str, Params], grads: dict[str, Params], memory: Any, rates: Rates, left: Array
    ) -> tuple[dict[str, Params], Any, Array]:
        """Parameters and memory after one step at the fraction `left` of the rates, and the norm before limiting."""
        norm = optax.global_norm(grads)
        if self._spec.clip_grad_norm is not None:
            grads = self._limited(grads, norm, rates.limit)
        if self._spec.name != "adamw":
            grads = jax.tree.map(lambda g, p: g + rates.decay * p, grads, params) if self._decays else grads
        moves, memory = self._rule.update(grads, memory, params)
        after = {
            name: _moved(part, moves[name], (rates.critic_lr if name == "critic" else rates.lr) * left, self._shrink(rates))
            for name, part in params.items()
        }
        return after, memory, norm

    @property
    def _decays(self) -> bool:
        return self._spec.weight_decay > 0

    def _shrink(self, rates: Rates) -> Array | None:
        """AdamW's own decay, beside the gradient."""
        return rates.decay if self._spec.name == "adamw" and self._decays else None

    def _limited(self, grads: dict[str, Params], norm: Array, limit: Array) -> dict[str, Params]:
        if not self._spec.clip_each or "critic" not in grads:
            return _times(grads, _factor(norm, limit))
        critic = {"critic": grads["critic"]}
        others = {name: part for name, part in grads.items() if name != "critic"}
        parts = [_times(part, _factor(optax.global_norm(part), limit)) for part in (others, critic)]
        return {**parts[0], **parts[1]}


def _rule(spec: OptimizerSpec) -> optax.GradientTransformation:
    """Directions to descend, before the learning rate."""
    kinds: dict[str, Callable[[], optax.GradientTransformation]] = {
        "adam": lambda: optax.scale_by_adam(*spec.betas, eps=spec.eps),
        "adamw": lambda: optax.scale_by_adam(*spec.betas, eps=spec.eps),
        "rmsprop": lambda: optax.chain(
            optax.scale_by_rms(decay=0.99 if spec.alpha is None else spec.alpha, eps=spec.eps, eps_in_sqrt=False),
            optax.trace(spec.momentum) if spec.momentum else optax.identity(),
        ),
        "sgd": lambda: optax.trace(spec.momentum, spec.nesterov) if spec.momentum else optax.identity(),
    }
    return kinds[spec.name]()


def _factor(norm: Array, limit: Array) -> Array:
    return jnp.minimum(1.0, limit / (norm + 1e-6))


def _times(grads: dict[str, Params], factor: Array) -> dict[str, Params]:
    return jax.tree.map(lambda g: g * factor, grads)


def _moved(params: Params, moves: Params, lr: Array, shrink: Array | None) -> Params:
    if shrink is None:
        return jax.tree.map(lambda p, move: p - lr * move, params, moves)
    return jax.tree.map(lambda p, move: p * (1 - lr * shrink) - lr * move, params, moves)
