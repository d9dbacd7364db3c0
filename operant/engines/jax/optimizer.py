"""Optimizer steps on all parameters as one vector, with the arithmetic of torch's optimizers of the same names.

Learning rates, clipping and weight decay are traced numbers, so that settings which differ only in them
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


class OptimizerHyper(NamedTuple):
    """The traced hyperparameters of an optimizer."""

    lr: Array
    critic_lr: Array
    end_fraction: Array
    max_grad_norm: Array
    weight_decay: Array


class OptState(NamedTuple):
    """State of an optimizer: running moments of the gradient, and the number of steps."""

    first: Array
    second: Array
    count: Array


def optimizer_hyper(spec: OptimizerSpec) -> OptimizerHyper:
    """The hyperparameters of a spec."""
    limit = jnp.inf if spec.clip_grad_norm is None else spec.clip_grad_norm
    numbers = (spec.lr, spec.critic_lr or spec.lr, spec.lr_end_fraction, limit, spec.weight_decay)
    return OptimizerHyper(*map(jnp.float32, numbers))


def lr_fraction(hyper: OptimizerHyper, frame: Array, budget: Array) -> Array:
    """The fraction of the initial learning rates at `frame`."""
    return 1.0 + (hyper.end_fraction - 1.0) * jnp.minimum(frame / budget, 1.0)


class Optimizer:
    """Gradient clipping (of all parameters or, with `clip_each`, of each group), weight decay, and the update rule.

    There are two groups: `critic` learns at the critic's rate, all else at the other.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self._spec = spec

    def init(self, params: dict[str, Params]) -> OptState:
        """The state before the first step."""
        nothing = jnp.zeros_like(ravel_pytree(_grouped(params))[0])
        return OptState(nothing, nothing, jnp.float32(0.0))

    def step(
        self,
        params: dict[str, Params],
        grads: dict[str, Params],
        state: OptState,
        hyper: OptimizerHyper,
        lr_scale: Array | float,
    ) -> tuple[dict[str, Params], OptState, Array]:
        """Parameters and state after one step at `lr_scale` times the learning rates, and the unclipped norm."""
        before, restore = ravel_pytree(_grouped(params))
        grad = ravel_pytree(_grouped(grads))[0]
        of_critic = _is_critic(params)
        norm = jnp.linalg.norm(grad)
        if self._spec.clip_grad_norm is not None:
            grad = grad * self._clip_factors(grad, norm, hyper.max_grad_norm, of_critic)
        decays, decoupled = self._spec.weight_decay > 0, self._spec.name == "adamw"
        if decays and not decoupled:
            grad = grad + hyper.weight_decay * before
        step, state = RULES[self._spec.name](self._spec, grad, state)
        lr = lr_scale * (hyper.lr if of_critic is None else jnp.where(of_critic, hyper.critic_lr, hyper.lr))
        after = before * (1 - lr * hyper.weight_decay) if decays and decoupled else before
        others, critic = restore(after - lr * step)
        return {**others, **critic}, state, norm

    def _clip_factors(self, grad: Array, norm: Array, limit: Array, of_critic: Array | None) -> Array:
        if not self._spec.clip_each or of_critic is None:
            return _clip_factor(norm, limit)
        critic, others = (jnp.linalg.norm(jnp.where(mine, grad, 0.0)) for mine in (of_critic, ~of_critic))
        return jnp.where(of_critic, _clip_factor(critic, limit), _clip_factor(others, limit))


def _grouped(params: dict[str, Params]) -> tuple[dict[str, Params], dict[str, Params]]:
    others = {name: part for name, part in params.items() if name != "critic"}
    return others, {name: part for name, part in params.items() if name == "critic"}


def _is_critic(params: dict[str, Params]) -> Array | None:
    """Which entries of the vector belong to the critic; None where all are of one group."""
    others, critic = (sum(leaf.size for leaf in jax.tree.leaves(part)) for part in _grouped(params))
    return jnp.arange(others + critic) >= others if others and critic else None


def _clip_factor(norm: Array, limit: Array) -> Array:
    return jnp.minimum(1.0, limit / (norm + 1e-6))


def _adam(spec: OptimizerSpec, grad: Array, state: OptState) -> tuple[Array, OptState]:
    """Adam (Kingma and Ba, 2015)."""
    fast, slow = spec.betas
    count = state.count + 1
    first, second = _blend(state.first, grad, fast), _blend(state.second, jnp.square(grad), slow)
    size = jnp.sqrt(second / (1 - slow**count)) + spec.eps
    return first / (1 - fast**count) / size, OptState(first, second, count)


def _rmsprop(spec: OptimizerSpec, grad: Array, state: OptState) -> tuple[Array, OptState]:
    """RMSprop (Hinton, 2012)."""
    second = _blend(state.second, jnp.square(grad), 0.99 if spec.alpha is None else spec.alpha)
    first = spec.momentum * state.first + grad / (jnp.sqrt(second) + spec.eps)
    return first, OptState(first, second, state.count + 1)


def _sgd(spec: OptimizerSpec, grad: Array, state: OptState) -> tuple[Array, OptState]:
    """Gradient descent, with momentum where that is asked for."""
    first = spec.momentum * state.first + grad
    step = grad + spec.momentum * first if spec.nesterov else first
    return step, OptState(first, state.second, state.count + 1)


def _blend(before: Array, now: Array, keep: float) -> Array:
    return keep * before + (1 - keep) * now


RULES = {"adam": _adam, "adamw": _adam, "rmsprop": _rmsprop, "sgd": _sgd}
