"""Acrobot as pure functions: two links to swing up by a torque at the joint between them (Sutton, 1996)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from operant.envs.functional.classic import Classic, Quantities
from operant.envs.functional.env import Discrete

STEP = 0.2
FASTEST = (4 * math.pi, 9 * math.pi)


@dataclass(frozen=True)
class Acrobot(Classic):
    """Both links have mass, length and moment of inertia 1; one step is one of Runge and Kutta's fourth order."""

    limit: int = 500
    name: str = "Acrobot-v1"
    observation_shape: ClassVar = (6,)
    actions: ClassVar = Discrete(3)

    def begin(self, key: Array) -> Quantities:
        return tuple(jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1))

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        inner, outer, turn, bend = runge_kutta(at, (action - 1).astype(jnp.float32))
        inner, outer = wrap(inner), wrap(outer)
        turn, bend = jnp.clip(turn, -FASTEST[0], FASTEST[0]), jnp.clip(bend, -FASTEST[1], FASTEST[1])
        raised = -jnp.cos(inner) - jnp.cos(outer + inner) > 1.0
        return (inner, outer, turn, bend), jnp.where(raised, 0.0, -1.0), raised

    def see(self, at: Quantities) -> Quantities:
        inner, outer, turn, bend = at
        return jnp.cos(inner), jnp.sin(inner), jnp.cos(outer), jnp.sin(outer), turn, bend


def runge_kutta(at: Quantities, torque: Array) -> Quantities:
    """The quantities one step later."""
    first = motion(at, torque)
    second = motion(along(at, first, STEP / 2), torque)
    third = motion(along(at, second, STEP / 2), torque)
    fourth = motion(along(at, third, STEP), torque)
    slopes = zip(first, second, third, fourth, strict=True)
    return along(at, tuple(a + 2 * b + 2 * c + d for a, b, c, d in slopes), STEP / 6)


def along(at: Quantities, slope: Quantities, time: float) -> Quantities:
    """The quantities after `time` of a constant slope."""
    return tuple(x + time * dx for x, dx in zip(at, slope, strict=True))


def motion(at: Quantities, torque: Array) -> Quantities:
    """The derivatives of the quantities, by the equations of Sutton and Barto's book."""
    inner, outer, turn, bend = at
    cos, sin = jnp.cos(outer), jnp.sin(outer)
    d1, d2 = 3.5 + cos, 1.25 + 0.5 * cos
    pull_outer = 4.9 * jnp.cos(inner + outer - math.pi / 2)
    pull_inner = -0.5 * bend**2 * sin - bend * turn * sin + 14.7 * jnp.cos(inner - math.pi / 2) + pull_outer
    bending = (torque + d2 / d1 * pull_inner - 0.5 * turn**2 * sin - pull_outer) / (1.25 - d2**2 / d1)
    turning = -(d2 * bending + pull_inner) / d1
    return turn, bend, turning, bending


def wrap(angle: Array) -> Array:
    """The same direction between -pi and pi; an angle that lies there stays as it is, bit for bit."""
    turns = jnp.floor((angle + math.pi) / (2 * math.pi))
    return jnp.where(jnp.abs(angle) <= math.pi, angle, angle - 2 * math.pi * turns)
