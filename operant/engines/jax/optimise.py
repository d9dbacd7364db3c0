"""One optimiser step on all parameters as one vector, with the arithmetic of torch's optimisers of the same names.

Learning rates, limits and decays are traced numbers, so that settings which differ only in them
share one compiled program. A network has a dozen small arrays; as one vector they take a handful of
operations, to compile and to run, instead of that many for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from operant.spec.settings.optimizers import OptimizerSpec

Params = Any


class Rates(NamedTuple):
    """The traced numbers of an optimiser."""

    lr: Array
    critic_lr: Array
    end_fraction: Array
    limit: Array
    decay: Array


class Memory(NamedTuple):
    """What an optimiser remembers: running moments of the gradient, and how many there were."""

    first: Array
    second: Array
    count: Array


def rates_of(spec: OptimizerSpec) -> Rates:
    """Those of a spec."""
    limit = jnp.inf if spec.clip_grad_norm is None else spec.clip_grad_norm
    numbers = (spec.lr, spec.critic_lr or spec.lr, spec.lr_end_fraction, limit, spec.weight_decay)
    return Rates(*map(jnp.float32, numbers))


class Optimiser:
    """How gradients become steps: the norm limited for all together or, with `clip_each`, for each group apart.

    There are two groups: what is called `critic` learns at the critic's rate, all else at the other.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self._spec = spec

    def init(self, params: dict[str, Params]) -> Memory:
        """The memory of an optimiser that has not moved yet."""
        nothing = jnp.zeros_like(ravel_pytree(_grouped(params))[0])
        return Memory(nothing, nothing, jnp.float32(0.0))

    def step(
        self, params: dict[str, Params], grads: dict[str, Params], memory: Memory, rates: Rates, left: Array | float
    ) -> tuple[dict[str, Params], Memory, Array]:
        """Parameters and memory after one step at the fraction `left` of the rates, and the norm before limiting."""
        before, restore = ravel_pytree(_grouped(params))
        grad = ravel_pytree(_grouped(grads))[0]
        of_critic = _is_critic(params)
        norm = jnp.linalg.norm(grad)
        if self._spec.clip_grad_norm is not None:
            grad = grad * self._factor(grad, norm, rates.limit, of_critic)
        decays, apart = self._spec.weight_decay > 0, self._spec.name == "adamw"
        if decays and not apart:
            grad = grad + rates.decay * before
        move, memory = RULES[self._spec.name](self._spec, grad, memory)
        lr = left * (rates.lr if of_critic is None else jnp.where(of_critic, rates.critic_lr, rates.lr))
        after = before * (1 - lr * rates.decay) if decays and apart else before
        others, critic = restore(after - lr * move)
        return {**others, **critic}, memory, norm

    def _factor(self, grad: Array, norm: Array, limit: Array, of_critic: Array | None) -> Array:
        if not self._spec.clip_each or of_critic is None:
            return _shortened(norm, limit)
        critic, others = (jnp.linalg.norm(jnp.where(mine, grad, 0.0)) for mine in (of_critic, ~of_critic))
        return jnp.where(of_critic, _shortened(critic, limit), _shortened(others, limit))


def _grouped(params: dict[str, Params]) -> tuple[dict[str, Params], dict[str, Params]]:
    others = {name: part for name, part in params.items() if name != "critic"}
    return others, {name: part for name, part in params.items() if name == "critic"}


def _is_critic(params: dict[str, Params]) -> Array | None:
    """Which numbers of the vector are of the critic; None where all are of one group."""
    others, critic = (sum(leaf.size for leaf in jax.tree.leaves(part)) for part in _grouped(params))
    return jnp.arange(others + critic) >= others if others and critic else None


def _shortened(norm: Array, limit: Array) -> Array:
    return jnp.minimum(1.0, limit / (norm + 1e-6))


def _adam(spec: OptimizerSpec, grad: Array, memory: Memory) -> tuple[Array, Memory]:
    """Adam (Kingma and Ba, 2015)."""
    fast, slow = spec.betas
    count = memory.count + 1
    first, second = _blend(memory.first, grad, fast), _blend(memory.second, jnp.square(grad), slow)
    size = jnp.sqrt(second / (1 - slow**count)) + spec.eps
    return first / (1 - fast**count) / size, Memory(first, second, count)


def _rmsprop(spec: OptimizerSpec, grad: Array, memory: Memory) -> tuple[Array, Memory]:
    """RMSprop (Hinton, 2012)."""
    second = _blend(memory.second, jnp.square(grad), 0.99 if spec.alpha is None else spec.alpha)
    first = spec.momentum * memory.first + grad / (jnp.sqrt(second) + spec.eps)
    return first, Memory(first, second, memory.count + 1)


def _sgd(spec: OptimizerSpec, grad: Array, memory: Memory) -> tuple[Array, Memory]:
    """Gradient descent, with momentum where that is asked for."""
    first = spec.momentum * memory.first + grad
    move = grad + spec.momentum * first if spec.nesterov else first
    return move, Memory(first, memory.second, memory.count + 1)


def _blend(before: Array, now: Array, keep: float) -> Array:
    return keep * before + (1 - keep) * now


RULES = {"adam": _adam, "adamw": _adam, "rmsprop": _rmsprop, "sgd": _sgd}
