"""Gymnasium environments stepped together, with explicit autoreset and a replayable state.

Three rules hold here, because each is a known source of silent faults elsewhere:

* An ended environment restarts within the same step. `next_obs` is the true successor of the
  transition and `obs` is what to act on next, so no transition spans two episodes.
* Every episode is reset with its own seed, a pure function of (environment, episode number).
  The state of any deterministic environment is therefore its seed and the actions since, which
  is what a checkpoint holds; restoring plays them again and compares the observation.
* `terminated` and `truncated` stay apart all the backend to the learner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from operant.envs.vector.actions import ActionMap
from operant.envs.vector.backend import choose_backend
from operant.envs.vector.base import VectorEnv
from operant.envs.vector.local import make_local
from operant.envs.vector.subproc import SubprocVectorEnv
from operant.errors import RunError

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


@dataclass(frozen=True)
class Ended:
    """An episode that ended in environment `index` at this step."""

    index: int
    seed: int
    score: float
    length: int
    terminated: bool


class Step(NamedTuple):
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


class AutoresetVectorEnv:
    """`num` copies of one environment, with seeds, scores and a log of every episode since its reset.

    `obs` is what to act on, `mask` what is legal there (None where the environment does not say), and
    `begun` whether it is the first observation of an episode.

    `episode_seed` gives the seed of an environment's k-th episode, and None where it has so many no more: it is left as
    it ended then, and may not be played on.

    `brief` says that too little will be played to pay for starting processes; `env` is one that
    the caller has made.
    """

    def __init__(
        self,
        spec: EnvSpec,
        num: int,
        episode_seed: Callable[[int, int], int | None],
        *,
        brief: bool = False,
        env: VectorEnv | None = None,
    ) -> None:
        self.num = num
        self.env = env or make_vector_env(spec, num, brief)
        self.actions = ActionMap(self.env.action_space)
        self.obs_shape = self.env.obs_shape
        self.name = spec.name
        self._episode_seed = episode_seed
        self._episode = [0] * num
        self._played: list[list[Any]] = [[] for _ in range(num)]
        self._score = np.zeros(num)
        self._playing: np.ndarray | None = None
        self.obs = np.zeros((num, *self.obs_shape), self.env.obs_dtype)
        self.mask: np.ndarray | None = None
        self.begun = np.ones(num, bool)
        self._reset(range(num))

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """Play one action in every environment, or only where `playing`; the others stay as they are."""
        self.send(actions, playing)
        return self.receive()

    def send(self, actions: np.ndarray, playing: np.ndarray | None = None) -> None:
        """Begin a step that `receive` ends: environments of other threads and processes are stepped meanwhile."""
        played = self.actions.to_env(actions)
        for i, action in enumerate(played):
            if playing is None or playing[i]:
                self._played[i].append(action)
        self._playing = playing
        self.env.send(played, playing)

    def receive(self) -> Step:
        """What the step did that `send` began."""
        playing, out = self._playing, self.env.receive()
        self._score += out.reward
        self.obs, self.mask = out.obs, out.mask
        self.begun = out.over if playing is None else out.over | (self.begun & ~playing)
        if out.mask is not None:
            self._check_mask(out.mask, out.over if playing is None else out.over | ~playing)
        ended: list[Ended] = []
        if out.over.any():
            self.obs = out.obs.copy()
            self.mask = None if out.mask is None else out.mask.copy()
            over = np.flatnonzero(out.over).tolist()
            ended = [self._end(i, bool(out.terminated[i])) for i in over]
            self._reset(over)
        reward = out.reward.astype(np.float32)
        return Step(self.obs, out.obs, reward, out.terminated, out.truncated, ended, self.mask, out.mask)

    def _end(self, i: int, terminated: bool) -> Ended:
        seed = self._episode_seed(i, self._episode[i])
        assert seed is not None, "an environment without an episode is not played"
        self._episode[i] += 1
        return Ended(i, seed, float(self._score[i]), len(self._played[i]), terminated)

    def _reset(self, indices: Iterable[int]) -> None:
        """Begin the next episode of these environments, where they have one."""
        seeds = {i: seed for i in indices if (seed := self._episode_seed(i, self._episode[i])) is not None}
        for i, (obs, mask) in self.env.reset_many(seeds).items():
            self._played[i] = []
            self._score[i] = 0.0
            self.obs[i] = obs
            if mask is not None:
                if self.mask is None:
                    self.mask = np.ones((self.num, len(mask)), bool)
                self.mask[i] = mask
                self._check_mask(self.mask, np.zeros(self.num, bool))
        if self.env.prefetches_resets:
            for i in seeds:
                following = self._episode_seed(i, self._episode[i] + 1)
                if following is not None:
                    self.env.prefetch_reset(i, following)

    def _check_mask(self, mask: np.ndarray, over: np.ndarray) -> None:
        """Refuse one that goes on without a legal action; one that is over gets no action, so all may be legal."""
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

        The episodes are played side by side and end together, so that environments which
        step in parallel also replay in parallel.
        """
        self._episode = state["episode"].tolist()
        logged = [self.actions.from_log(state[f"actions/{i}"]) for i in range(self.num)]
        longest = max(map(len, logged))
        begins = np.array([longest - len(actions) for actions in logged])
        idle = next((actions[0] for actions in logged if actions), None)
        for t in range(longest + 1):
            self._reset(np.flatnonzero(begins == t).tolist())
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
        out = self.env.step(actions, playing)
        self._score += np.where(playing, out.reward, 0.0)
        self.obs, self.mask = out.obs, out.mask
        for i in np.flatnonzero(playing).tolist():
            self._played[i].append(actions[i])

    def close(self) -> None:
        """Release every environment."""
        self.env.close()


def make_vector_env(spec: EnvSpec, num: int, brief: bool = False) -> VectorEnv:
    """The environments of a spec, stepped as it asks or as suits their family."""
    backend = choose_backend(spec, num, brief)
    if backend.name == "processes":
        return SubprocVectorEnv(spec, num, backend.processes)
    return make_local(spec, num)
