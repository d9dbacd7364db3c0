"""Gymnasium environments stepped together, with explicit autoreset and a replayable state.

Three rules hold here, because each is a known source of silent faults elsewhere:

* An ended environment restarts within the same step. `next_obs` is the true successor of the
  transition and `obs` is what to act on next, so no transition spans two episodes.
* Every episode is reset with its own seed, a pure function of (environment, episode number).
  The state of any deterministic environment is therefore its seed and the actions since, which
  is what a checkpoint holds; restoring plays them again and compares the observation.
* `terminated` and `truncated` stay apart all the way to the learner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from operant.envs.atari import AtariEnv, AtariWorlds
from operant.envs.families import behaved, calm_mujoco
from operant.envs.find import find, is_own, plays_natively
from operant.envs.hackmatrix.faces.bridge import register_bridge
from operant.envs.hackmatrix.faces.gym import register_hackmatrix
from operant.envs.partial import register_partial
from operant.envs.probe import register_probes
from operant.envs.puzzles import register_puzzles
from operant.envs.vectorise import NATIVE, choose
from operant.envs.workers import ProcessWorlds
from operant.envs.worlds import SerialWorlds, Worlds, is_image
from operant.errors import RunError, UsageError

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

register_hackmatrix()
register_bridge()
register_probes()
register_puzzles()
register_partial()


@dataclass(frozen=True)
class Ended:
    """An episode that ended in environment `index` at this step."""

    index: int
    seed: int
    score: float
    length: int
    terminated: bool


@dataclass(frozen=True)
class Step:
    """One transition of every environment. Arrays are fresh; the caller may keep them.

    `mask` and `next_mask` say which actions are legal in `obs` and `next_obs`; None where the
    environment does not say.
    """

    obs: np.ndarray
    next_obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    ended: list[Ended]
    mask: np.ndarray | None = None
    next_mask: np.ndarray | None = None


class VectorEnv:
    """`num` copies of one environment, with seeds, scores and a log of every episode since its reset.

    `obs` is what to act on, `mask` what is legal there (None where the environment does not say), and
    `begun` whether it is the first observation of an episode.

    `brief` says that too little will be played to pay for starting processes; `worlds` are ones
    that the caller has made.
    """

    def __init__(
        self,
        spec: EnvSpec,
        num: int,
        episode_seed: Callable[[int, int], int],
        *,
        brief: bool = False,
        worlds: Worlds | None = None,
    ) -> None:
        self.num = num
        self.worlds = worlds or make_worlds(spec, num, brief)
        self.actions = ActionMap(self.worlds.action_space)
        self.obs_shape = self.worlds.obs_shape
        self.name = spec.name
        self._episode_seed = episode_seed
        self._episode = [0] * num
        self._played: list[list[Any]] = [[] for _ in range(num)]
        self._score = np.zeros(num)
        self.obs = np.zeros((num, *self.obs_shape), self.worlds.obs_dtype)
        self.mask: np.ndarray | None = None
        self.begun = np.ones(num, bool)
        for i in range(num):
            self._restart(i)

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """Play one action in every environment, or only where `playing`; the others stay as they are."""
        played = self.actions.to_env(actions)
        for i, action in enumerate(played):
            if playing is None or playing[i]:
                self._played[i].append(action)
        out = self.worlds.step(played, playing)
        self._score += out.reward
        self.obs, self.mask = out.obs, out.mask
        self.begun = out.over if playing is None else out.over | (self.begun & ~playing)
        if out.mask is not None:
            self._check_mask(out.mask, out.over)
        ended: list[Ended] = []
        if out.over.any():
            self.obs = out.obs.copy()
            self.mask = None if out.mask is None else out.mask.copy()
            ended = [self._end(i, bool(out.terminated[i])) for i in np.flatnonzero(out.over).tolist()]
        reward = out.reward.astype(np.float32)
        return Step(self.obs, out.obs, reward, out.terminated, out.truncated, ended, self.mask, out.mask)

    def _end(self, i: int, terminated: bool) -> Ended:
        seed = self._episode_seed(i, self._episode[i])
        over = Ended(i, seed, float(self._score[i]), len(self._played[i]), terminated)
        self._episode[i] += 1
        self._restart(i)
        return over

    def _restart(self, i: int) -> None:
        self._played[i] = []
        self._score[i] = 0.0
        self.obs[i], mask = self.worlds.restart(i, self._episode_seed(i, self._episode[i]))
        if self.worlds.foresees:
            self.worlds.foresee(i, self._episode_seed(i, self._episode[i] + 1))
        if mask is not None:
            if self.mask is None:
                self.mask = np.ones((self.num, len(mask)), bool)
            self.mask[i] = mask
            self._check_mask(self.mask, np.zeros(self.num, bool))

    def _check_mask(self, mask: np.ndarray, over: np.ndarray) -> None:
        """Refuse a world that goes on with nothing to do; in one that is over, nobody acts, so all may be legal."""
        stuck = ~mask.any(1)
        if (stuck & ~over).any():
            raise RunError(
                f"{self.name} gave an action mask with no legal action in a state that is not the end of an episode",
                remedy="end the episode where nothing is legal, or make an action that passes",
            )
        mask[stuck] = True

    def state(self) -> dict[str, np.ndarray]:
        """What reproduces every environment: episode numbers, actions since the reset, observations."""
        state = {"episode": np.array(self._episode, np.int64), "obs": self.obs.copy()}
        for i, played in enumerate(self._played):
            state[f"actions/{i}"] = np.array(played, self.actions.log_dtype).reshape(
                len(played), *self.actions.env_shape
            )
        return state

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Return to `state` by playing its actions again; an environment that differs is an error.

        The episodes are played side by side and end together, so that worlds which step in
        parallel also replay in parallel.
        """
        self._episode = state["episode"].tolist()
        logged = [self.actions.from_log(state[f"actions/{i}"]) for i in range(self.num)]
        longest = max(map(len, logged))
        begins = np.array([longest - len(actions) for actions in logged])
        idle = next((actions[0] for actions in logged if actions), None)
        for t in range(longest + 1):
            for i in np.flatnonzero(begins == t).tolist():
                self._restart(i)
            if t == longest:
                break
            now = [actions[t - begins[i]] if begins[i] <= t else idle for i, actions in enumerate(logged)]
            self._replay(now, begins <= t)
        self.begun = np.array([not played for played in self._played])
        if not np.array_equal(self.obs, state["obs"], equal_nan=True):
            raise RunError(
                f"{self.name} did not return to the checkpoint's state: the same seed and actions led elsewhere",
                remedy="make the environment a function of reset(seed=...) and its actions; then start a new run",
            )

    def _replay(self, actions: list[Any], playing: np.ndarray) -> None:
        out = self.worlds.step(actions, playing)
        self._score += np.where(playing, out.reward, 0.0)
        self.obs, self.mask = out.obs, out.mask
        for i in np.flatnonzero(playing).tolist():
            self._played[i].append(actions[i])

    def close(self) -> None:
        """Release every environment."""
        self.worlds.close()


def make_worlds(spec: EnvSpec, num: int, brief: bool = False) -> Worlds:
    """The environments of a spec, stepped as it asks or as suits their family."""
    way = choose(spec, num, brief)
    if way.name == NATIVE:
        return AtariWorlds(spec, num)
    if way.name == "processes":
        return ProcessWorlds(spec, num, way.processes, make_env)
    return SerialWorlds([make_env(spec) for _ in range(num)])


class ActionMap:
    """Between a policy's actions and an environment's.

    Discrete actions are counted from 0. A bounded real action is a number in [-1, 1] to the
    policy, clipped and stretched to the environment's bounds; an unbounded one passes as it is.
    """

    def __init__(self, space: gym.Space) -> None:
        self.discrete = isinstance(space, Discrete)
        if isinstance(space, Discrete):
            self.size = int(space.n)
            self._start = int(space.start)
            self.env_shape: tuple[int, ...] = ()
            self.log_dtype: Any = np.int64
        elif isinstance(space, Box):
            self.size = int(np.prod(space.shape))
            self.env_shape = space.shape
            self.log_dtype = space.dtype
            self._bounded = np.isfinite(space.low) & np.isfinite(space.high)
            low, high = np.where(self._bounded, space.low, -1.0), np.where(self._bounded, space.high, 1.0)
            self._middle, self._half = (high + low) / 2, (high - low) / 2
        else:
            raise UsageError(f"action space {space} is not supported", remedy="use Discrete or Box actions")

    def to_env(self, actions: np.ndarray) -> list[Any]:
        """One action per environment, as its `step` takes it."""
        if self.discrete:
            return (actions + self._start).tolist() if self._start else actions.tolist()
        shaped = actions.reshape(len(actions), *self.env_shape)
        clipped = np.where(self._bounded, np.clip(shaped, -1.0, 1.0), shaped)
        return list((clipped * self._half + self._middle).astype(self.log_dtype))

    def from_log(self, logged: np.ndarray) -> list[Any]:
        """Logged actions as they were passed to `step`."""
        return logged.tolist() if self.discrete else list(logged)


def make_env(spec: EnvSpec, render_mode: str | None = None) -> gym.Env:
    """One environment by its name; an observation that is neither vector nor image is flattened to one real vector."""
    if plays_natively(spec):
        return AtariEnv(spec, render_mode)
    options = dict(spec.kwargs)
    if render_mode is not None:
        options["render_mode"] = render_mode
    if spec.max_t is not None:
        options["max_episode_steps"] = spec.max_t
    recipe = find(spec.name)
    calm_mujoco(recipe.entry_point)
    env = behaved(gym.make(recipe if is_own(spec.name) else spec.name, disable_env_checker=True, **options))
    is_vector = isinstance(env.observation_space, Box) and len(env.observation_space.shape) == 1
    return env if is_vector or is_image(env.observation_space) else gym.wrappers.FlattenObservation(env)


def observation_shape(env: gym.Env) -> tuple[int, ...]:
    """Shape of one observation."""
    shape = env.observation_space.shape
    assert shape is not None, "make_env flattens every other space"
    return shape
