"""The base class of the learners, and the parts of the train state that all algorithms share.

A learner is static: it holds settings and no arrays. Everything that changes is one pytree, `TrainState`,
which goes into `update` and comes out of it; `program` compiles many updates into one chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.engines.jax.devices import Axis
from operant.engines.jax.nets import Params
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.tracing import static
from operant.envs.functional.env import FunctionalEnv
from operant.spec.schedules import Linear, Schedule, ScheduleSpec
from operant.spec.schema import Spec

GREEDY, SAMPLED, RANDOM = 0, 1, 2  # how actions are chosen


class Policy(NamedTuple):
    """All that is needed to act: weights, and the statistics of observations where they are normalized."""

    params: Params
    obs_stats: RunningMeanStd | None


class TrainState(NamedTuple):
    """Everything that must survive a restart. Only `rollout` is split among devices; the rest is the same on all."""

    policy: Policy
    learner: Any
    rollout: Any


class RecordedSteps(NamedTuple):
    """Steps of the environments whose episodes are recorded, [T, E]: whether one ended there, how, and its totals.

    `facts` are those of the environment, valid only where an episode ended.
    """

    over: Array
    terminated: Array
    score: Array
    length: Array
    facts: dict[str, Array]


class UpdateMetrics(NamedTuple):
    """Metrics of an update: named scalars, and sums over the episodes that ended in all environments.

    `means` count only where the update `learned` (1 or 0); those of the environments always.
    """

    means: dict[str, Array]
    env_means: dict[str, Array]
    env_maxima: dict[str, Array]
    learned: Array
    gradient_steps: Array
    episodes: Array
    score: Array
    length: Array
    recorded: RecordedSteps


class PolicyInput(NamedTuple):
    """What a policy is shown: observations [E, ...] and what is legal there.

    A recurrent one is also told which observations are the first of an episode, and has hidden states [E, H].
    """

    observation: Any
    mask: Any = None
    begun: Any = None
    hidden: Any = None


class HostRollout(NamedTuple):
    """Steps [T, N, ...] that environments on the host took.

    `begun` marks the first observations of episodes. Off-policy learners are given the true successor of every step,
    `next_observation`. Others are given what comes after the rollout, `last` [N, ...], and the last observations of
    truncated episodes, `final` [S, N, ...].
    """

    observation: Any
    mask: Any
    action: Any
    reward: Any
    terminated: Any
    truncated: Any
    begun: Any
    next_observation: Any = None
    last: Any = None
    final: Any = None


class LearnMetrics(NamedTuple):
    """Metrics of what was learned, without those of play: see `UpdateMetrics`."""

    means: dict[str, Array]
    learned: Array
    gradient_steps: Array


class LinearSchedule(NamedTuple):
    """A linear schedule as traced numbers."""

    start: Array
    end: Array
    begin: Array
    frames: Array

    def at(self, frame: Array) -> Array:
        """The value at `frame`."""
        done = jnp.clip((frame - self.begin) / self.frames, 0.0, 1.0)
        return self.start + (self.end - self.start) * done


@jax.tree_util.register_static
@dataclass(frozen=True)
class OwnSchedule:
    """A schedule of others, which is compiled into the program: no number of it is traced but the frame."""

    settings: ScheduleSpec

    def at(self, frame: Array) -> Array:
        """The value at `frame`."""
        return jnp.float32(self.settings.at(frame))


def build_schedule(schedule: Schedule) -> LinearSchedule | OwnSchedule:
    """The schedule of a spec; a constant is a line with equal ends."""
    if isinstance(schedule, ScheduleSpec) and not isinstance(schedule, Linear):
        return OwnSchedule(schedule)
    line = schedule if isinstance(schedule, Linear) else Linear(start=float(schedule), end=float(schedule), frames=1)
    return LinearSchedule(*map(jnp.float32, (line.start, line.end, line.begin, line.frames)))


class Learner(ABC):
    """An algorithm on one environment (abstract): `frames` per update, `local` environments per device.

    A learner is made as `Learner(spec, env)` and is called inside compiled code, so it keeps nothing that changes:
    that is all in the train state, whose arrays a checkpoint holds. `TRACED` are the settings that `hyper` turns into
    traced numbers. The learner's own `spec` holds the others, which are the same in all lanes; a traced one cannot be
    read there.
    """

    ENGINE: ClassVar[str] = "jax"
    TRACED: ClassVar[tuple[str, ...]]
    ON_HOST: ClassVar[bool] = False  # whether it has `explore_on_host` and `learn_on_host`
    OFF_POLICY: ClassVar[bool] = False  # whether what the host played goes through `store_on_host`
    frames: int
    local: int
    start: int = 0  # frames before the first gradient step

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        self.spec, self.env = static(spec, self.TRACED), env

    @abstractmethod
    def hyper(self, spec: Spec) -> Any:
        """The traced hyperparameters of a lane's spec: lanes of one program may differ in them."""

    @abstractmethod
    def init_params(self, rng: np.random.Generator) -> Params:
        """Fresh weights of every network that learns, drawn on the host."""

    @abstractmethod
    def init(self, key: Array, weights: Params, axis: Axis) -> TrainState:
        """The train state before the first update."""

    @abstractmethod
    def update(self, state: TrainState, hyper: Any, axis: Axis) -> tuple[TrainState, UpdateMetrics]:
        """Collect `frames` frames and learn from them."""

    @property
    def exploration_bits(self) -> int:
        """How many 32-bit random numbers `explore_on_host` needs for each environment."""
        raise NotImplementedError(f"{type(self).__name__} steps compiled environments only")

    def explore_on_host(
        self, policy: Policy, updates: Array, hyper: Any, seen: PolicyInput, bits: Array
    ) -> tuple[Array, Any]:
        """Actions of training after so many updates, in the policy's scale, for environments on the host.

        And the hidden states after them, None where the policy has none. Chance comes of `bits` [E, exploration_bits].
        """
        raise NotImplementedError(f"{type(self).__name__} steps compiled environments only")

    def store_on_host(self, rollout: Any, played: HostRollout) -> Any:
        """The rollout state with what the host played in its replay buffer; asked only of `OFF_POLICY` learners."""
        raise NotImplementedError(f"{type(self).__name__} keeps no replay")

    def learn_on_host(
        self, state: TrainState, hyper: Any, played: HostRollout, learns: bool
    ) -> tuple[TrainState, LearnMetrics | None]:
        """The state after `frames` frames that the host played, which are stored; it may be that it `learns` not yet.

        What is None in its rollout state stays as it is.
        """
        raise NotImplementedError(f"{type(self).__name__} steps compiled environments only")

    def init_hidden(self, count: int) -> Any:
        """Hidden states of so many episodes that begin; None where the policy has none."""
        del count
        return None

    def hidden_in(self, rollout: Any) -> Any:
        """The hidden states of the environments in a rollout state; None where the policy has none."""
        del rollout
        return None

    def outputs_and_hidden(self, policy: Policy, seen: PolicyInput) -> tuple[Array, Any]:
        """`outputs`, and the hidden states after them."""
        return self.outputs(policy, seen.observation), None

    def act_and_hidden(
        self, policy: Policy, hyper: Any, seen: PolicyInput, key: Array, mode: Array
    ) -> tuple[Array, Any]:
        """`act`, and the hidden states after it."""
        return self.act(policy, hyper, seen.observation, seen.mask, key, mode), None

    def probs_and_value(self, policy: Policy, observation: Array, mask: Array | None) -> tuple[Array, Array] | None:
        """The probability of every discrete action and the value of each observation; None where there are none."""
        del policy, observation, mask
        return None

    @abstractmethod
    def outputs(self, policy: Policy, observation: Array) -> Array:
        """Logits, action values or means of observations [E, ...]; log deviations follow where there are any."""

    @abstractmethod
    def act(self, policy: Policy, hyper: Any, observation: Array, mask: Array | None, key: Array, mode: Array) -> Array:
        """Actions for observations [E, ...]: greedy, sampled as in training, or uniformly random, as `mode` says."""

    @abstractmethod
    def update_counts(self) -> tuple[list[str], int]:
        """How frames become gradient steps, as lines of text, and how many of them a session takes."""
