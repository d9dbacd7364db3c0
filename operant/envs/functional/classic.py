"""Classic control as pure functions: the problems of Gymnasium 1.4 of the same names, step for step.

The arithmetic is in single precision, where Gymnasium's is in double; tests play both side by side.
Each problem keeps its quantities as separate scalars, so that a compiler can fuse a whole step.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from operant.envs.functional.env import Continuous, Discrete, FunctionalEnv, Outcome, select, unnamed

Quantities = tuple[Array, ...]


class Body(NamedTuple):
    """The state of every problem here: its quantities, and the steps of the episode so far."""

    at: Quantities
    time: Array


@dataclass(frozen=True)
class Classic(FunctionalEnv):
    """The base of the problems (abstract): a body that moves without chance, and a time limit."""

    limit: int

    @abstractmethod
    def begin(self, key: Array) -> Quantities:
        """Where an episode begins."""

    @abstractmethod
    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        """What one action leads to: the new quantities, the reward, and whether the episode is terminated."""

    @abstractmethod
    def see(self, at: Quantities) -> Quantities:
        """The numbers of an observation."""

    def reset(self, key: Array) -> tuple[Body, Array]:
        body = Body(self.begin(key), jnp.int32(0))
        return body, self.observe(body)

    def step(self, state: Body, action: Array, key: Array) -> tuple[Body, Outcome]:
        at, reward, terminated = self.move(state.at, action)
        body = Body(at, state.time + 1)
        reward = jnp.asarray(reward, jnp.float32)
        return body, Outcome(self.observe(body), reward, terminated, body.time >= self.limit, {})

    def observe(self, state: Body) -> Array:
        return jnp.stack(self.see(state.at)).astype(jnp.float32)

    def advance(self, states: Body, actions: Array, keys: Array) -> tuple[Body, Array, Outcome]:
        """As for any problem; only the resets need the keys, so they are not split."""
        states, outcome = jax.vmap(self.step)(states, actions, keys)
        fresh, first = jax.vmap(self.reset)(unnamed(keys))
        over = outcome.terminated | outcome.truncated
        states = jax.tree.map(lambda new, old: select(over, new, old), fresh, states)
        return states, select(over, first, outcome.observation), outcome


@dataclass(frozen=True)
class CartPole(Classic):
    """A pole on a cart that is pushed to the left or the right (Barto, Sutton and Anderson, 1983)."""

    limit: int = 500
    name: str = "CartPole-v1"
    sutton_barto_reward: bool = False
    observation_shape: ClassVar = (4,)
    actions: ClassVar = Discrete(2)

    def begin(self, key: Array) -> Quantities:
        return tuple(jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05))

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        x, speed, angle, turn = at
        force = jnp.where(action == 1, 10.0, -10.0)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        turning = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        speeding = push - 0.05 * turning * cos / 1.1
        x, speed = x + 0.02 * speed, speed + 0.02 * speeding
        angle, turn = angle + 0.02 * turn, turn + 0.02 * turning
        fallen = (jnp.abs(x) > 2.4) | (jnp.abs(angle) > 12 * 2 * math.pi / 360)
        reward = jnp.where(fallen, -1.0, 0.0) if self.sutton_barto_reward else jnp.ones_like(x)
        return (x, speed, angle, turn), reward, fallen

    def see(self, at: Quantities) -> Quantities:
        return at


@dataclass(frozen=True)
class Pendulum(Classic):
    """A pendulum to swing up and hold by a torque."""

    limit: int = 200
    name: str = "Pendulum-v1"
    g: float = 10.0
    observation_shape: ClassVar = (3,)
    actions: ClassVar = Continuous(-2.0, 2.0, (1,))

    def begin(self, key: Array) -> Quantities:
        return tuple(jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0) * jnp.array([math.pi, 1.0]))

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        angle, turn = at
        torque = jnp.clip(action[0], -2.0, 2.0)
        upright = (angle + math.pi) % (2 * math.pi) - math.pi
        cost = upright**2 + 0.1 * turn**2 + 0.001 * torque**2
        turn = jnp.clip(turn + (1.5 * self.g * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        return (angle + turn * 0.05, turn), -cost, jnp.zeros_like(cost, bool)

    def see(self, at: Quantities) -> Quantities:
        angle, turn = at
        return jnp.cos(angle), jnp.sin(angle), turn


@dataclass(frozen=True)
class MountainCar(Classic):
    """A car in a valley, too weak to drive straight up (Moore, 1990)."""

    limit: int = 200
    name: str = "MountainCar-v0"
    goal_velocity: float = 0.0
    observation_shape: ClassVar = (2,)
    actions: ClassVar = Discrete(3)

    def begin(self, key: Array) -> Quantities:
        return in_the_valley(key)

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        x, speed = roll(at, (action - 1) * 0.001)
        return (x, speed), jnp.full_like(x, -1.0), (x >= 0.5) & (speed >= self.goal_velocity)

    def see(self, at: Quantities) -> Quantities:
        return at


@dataclass(frozen=True)
class MountainCarContinuous(Classic):
    """The same car with a real throttle, paid for arriving and charged for fuel."""

    limit: int = 999
    name: str = "MountainCarContinuous-v0"
    goal_velocity: float = 0.0
    observation_shape: ClassVar = (2,)
    actions: ClassVar = Continuous(-1.0, 1.0, (1,))

    def begin(self, key: Array) -> Quantities:
        return in_the_valley(key)

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        x, speed = roll(at, jnp.clip(action[0], -1.0, 1.0) * 0.0015)
        arrived = (x >= 0.45) & (speed >= self.goal_velocity)
        return (x, speed), jnp.where(arrived, 100.0, 0.0) - 0.1 * action[0] ** 2, arrived

    def see(self, at: Quantities) -> Quantities:
        return at


def in_the_valley(key: Array) -> Quantities:
    """Somewhere near the bottom, at rest."""
    return jax.random.uniform(key, minval=-0.6, maxval=-0.4), jnp.float32(0.0)


def roll(at: Quantities, force: Array) -> Quantities:
    """The car's new place and speed; the wall on the left stops it."""
    x, speed = at
    speed = jnp.clip(speed + force - 0.0025 * jnp.cos(3 * x), -0.07, 0.07)
    x = jnp.clip(x + speed, -1.2, 0.6)
    return x, jnp.where((x <= -1.2) & (speed < 0), 0.0, speed)
