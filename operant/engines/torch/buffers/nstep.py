"""Transitions that look several steps ahead, for learners that bootstrap."""

from __future__ import annotations

import numpy as np

Rows = dict[str, np.ndarray]


class NStep:
    """Joins up to `steps` transitions of each environment into one.

    A joined row leads from an observation and action to the successor k steps later, with reward
    r_0 + gamma r_1 + ... + gamma^(k-1) r_(k-1) and `discount` gamma^k for what follows. k is
    `steps`, or less where the episode ends first: then every pending row is completed with the
    final observation, so nothing reaches into the next episode and truncation still bootstraps.
    """

    def __init__(self, num: int, steps: int, gamma: float, obs_shape: tuple[int, ...], action: np.ndarray) -> None:
        self._steps = steps
        self._gamma = gamma
        # Every environment's begun rows, oldest first; `span` counts the steps that a row has seen.
        self._obs = np.zeros((num, steps, *obs_shape), np.float32)
        self._action = np.zeros((num, steps, *action.shape), action.dtype)
        self._reward = np.zeros((num, steps), np.float64)
        self._span = np.zeros((num, steps), np.int64)
        self._begun = np.zeros(num, np.int64)

    def push(self, rows: Rows, truncated: np.ndarray) -> Rows:
        """Take one step of every environment; returns the rows it completes, which may be none."""
        done: list[tuple[int, int]] = []
        for i, begun in enumerate(self._begun.tolist()):
            self._obs[i, begun], self._action[i, begun] = rows["obs"][i], rows["action"][i]
            self._reward[i, begun], self._span[i, begun] = 0.0, 0
            self._begun[i] = begun = begun + 1
            self._reward[i, :begun] += self._gamma ** self._span[i, :begun] * float(rows["reward"][i])
            self._span[i, :begun] += 1
            if rows["terminated"][i] or truncated[i]:
                done += [(i, k) for k in range(begun)]
            elif begun == self._steps:
                done.append((i, 0))
        completed = self._take(rows, done)
        for i in dict.fromkeys(i for i, _ in done):
            self._drop(i, sum(j == i for j, _ in done))
        return completed

    def _take(self, rows: Rows, done: list[tuple[int, int]]) -> Rows:
        env, slot = np.array(done, np.int64).reshape(-1, 2).T
        legal = {"next_mask": rows["next_mask"][env]} if "next_mask" in rows else {}
        return {
            "obs": self._obs[env, slot],
            "action": self._action[env, slot],
            "reward": self._reward[env, slot].astype(np.float32),
            "next_obs": rows["next_obs"][env],
            "terminated": rows["terminated"][env],
            "discount": (self._gamma ** self._span[env, slot]).astype(np.float32),
            **legal,
        }

    def _drop(self, i: int, count: int) -> None:
        """Forget the oldest `count` rows of an environment."""
        for array in (self._obs, self._action, self._reward, self._span):
            array[i] = np.roll(array[i], -count, axis=0)
        self._begun[i] -= count

    def state(self) -> Rows:
        """The rows begun but not completed."""
        return {
            "obs": self._obs,
            "action": self._action,
            "reward": self._reward,
            "span": self._span,
            "begun": self._begun,
        }

    def restore(self, state: Rows) -> None:
        """Take back what `state` gave."""
        for name, array in self.state().items():
            array[:] = state[name]
