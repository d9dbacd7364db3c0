"""What the host needs of an algorithm, and the parts of a state that all algorithms share.

A learner is static: it holds settings and no arrays. Everything that changes is one pytree, `State`,
which goes into `update` and comes out of it; `program` compiles many updates into one chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.engines.jax.devices import Axis
from operant.engines.jax.nets import Params
from operant.engines.jax.normalise import Moments
from operant.engines.jax.optimise import Rates
from operant.engines.jax.tracing import static
from operant.envs.functional import FunctionalEnv
from operant.spec.fields import Linear, Schedule
from operant.spec.schema import Spec

GREEDY, SAMPLED, RANDOM = 0, 1, 2  # ways to play


class Policy(NamedTuple):
    """All that is needed to act: weights, and the statistics of observations where they are normalised."""

    params: Params
    seen: Moments | None


class State(NamedTuple):
    """Everything that must survive a restart. Only `worlds` is split among devices; the rest is the same on all."""

    policy: Policy
    mind: Any
    worlds: Any


class Recorded(NamedTuple):
    """Steps of the environments whose episodes are recorded, [T, E]: whether one ended there, how, and what it came to.

    `facts` are the problem's own, which count only where an episode ended.
    """

    over: Array
    terminated: Array
    score: Array
    length: Array
    facts: dict[str, Array]


class Report(NamedTuple):
    """What an update tells the host: named scalars, and sums over the episodes that ended in all environments.

    `means` count only where the update `learnt` (1 or 0), `seen` and `maxima` always; `steps` are gradient steps.
    """

    means: dict[str, Array]
    seen: dict[str, Array]
    maxima: dict[str, Array]
    learnt: Array
    steps: Array
    episodes: Array
    score: Array
    length: Array
    recorded: Recorded


class Line(NamedTuple):
    """A schedule as traced numbers."""

    start: Array
    end: Array
    begin: Array
    frames: Array

    def at(self, frame: Array) -> Array:
        """The value at `frame`."""
        done = jnp.clip((frame - self.begin) / self.frames, 0.0, 1.0)
        return self.start + (self.end - self.start) * done


def left_of(rates: Rates, frame: Array, budget: Array) -> Array:
    """The fraction of the learning rates at `frame`."""
    return 1.0 + (rates.end_fraction - 1.0) * jnp.minimum(frame / budget, 1.0)


def line_of(schedule: Schedule) -> Line:
    """A constant is a line that never moves."""
    if isinstance(schedule, Linear):
        numbers = (schedule.start, schedule.end, schedule.begin, schedule.frames)
    else:
        numbers = (schedule, schedule, 0, 1)
    return Line(*map(jnp.float32, numbers))


class Learner(ABC):
    """An algorithm on one problem (abstract): `frames` are those of one update, `local` environments a device has.

    `TRACED` are the settings that `hyper` turns into numbers of the program. The learner's own `spec`
    holds the others, which are the same in all lanes; a traced one cannot be read there.
    """

    TRACED: ClassVar[tuple[str, ...]]
    frames: int
    local: int

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        self.spec, self.env = static(spec, self.TRACED), env

    @abstractmethod
    def hyper(self, spec: Spec) -> Any:
        """The numbers of a lane's whole spec that are traced: lanes of one program may differ in them."""

    @abstractmethod
    def weights(self, rng: np.random.Generator) -> Params:
        """Fresh weights of every network that learns, drawn on the host."""

    @abstractmethod
    def init(self, key: Array, weights: Params, axis: Axis) -> State:
        """A state that has played nothing yet."""

    @abstractmethod
    def update(self, state: State, hyper: Any, axis: Axis) -> tuple[State, Report]:
        """Play `frames` frames and learn from them."""

    def think(self, policy: Policy, observation: Array, mask: Array | None) -> tuple[Array, Array] | None:
        """The chance of every discrete action and the value of each observation; None where there are none."""
        del policy, observation, mask
        return None

    @abstractmethod
    def act(self, policy: Policy, hyper: Any, observation: Array, mask: Array | None, key: Array, way: Array) -> Array:
        """Actions of observations [E, ...], played greedily, sampled as in training, or uniformly at random."""

    @abstractmethod
    def arithmetic(self) -> tuple[list[str], int]:
        """How frames become gradient steps, in words, and how many of them a session makes."""
