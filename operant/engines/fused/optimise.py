"""One optimiser step on all parameters as one vector, with the arithmetic of torch's optimisers of the same names.

Learning rates, limits and decays are traced numbers, so that settings which differ only in them
share one compiled program. A network has a dozen small arrays; as one vector they take a handful of
operations, to compile and to run, instead of that many for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

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
    """How gradients become steps: the norm limited for all together or, with `clip_each`, for each group apart.

    There are two groups: what is called `critic` learns at the critic's rate, all else at the other.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self._spec = spec
        self._rule = _rule(spec)

    def init(self, params: dict[str, Params]) -> Any:
        """The memory of an optimiser that has not moved yet."""
        return self._rule.init(ravel_pytree(_grouped(params))[0])

    def step(
        self, params: dict[str, Params], grads: dict[str, Params], memory: Any, rates: Rates, left: Array | float
    ) -> tuple[dict[str, Params], Any, Array]:
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
        move, memory = self._rule.update(grad, memory, before)
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
