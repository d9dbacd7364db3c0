"""Steps of environments on the host, recorded as arrays that a learner takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.engines.jax.learner import HostRollout, Learner
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended


class Recorder:
    """Steps a vector env and keeps what a rollout of `learner` consists of; its observations if it `observes`."""

    def __init__(self, vector: AutoresetVectorEnv, learner: Learner, observes: bool = True) -> None:
        self._vector, self._off_policy, self._observes = vector, learner.OFF_POLICY, observes
        self._slots: int = getattr(learner, "slots", None) or 0
        self._rows: list[tuple[np.ndarray | None, ...]] = []
        self._final: list[list[np.ndarray]] = [[] for _ in range(vector.num)]

    def send(self, action: np.ndarray) -> None:
        """Begin a step with one action, in the policy's scale, in every environment."""
        observed = self._vector.obs if self._observes else None
        self._acted_on, self._begun = (observed, self._vector.mask, action), self._vector.begun
        self._vector.send(action)

    def receive(self) -> list[Ended]:
        """End the step that `send` began; returns the episodes that ended."""
        step = self._vector.receive()
        row = (*self._acted_on, step.reward, step.terminated, step.truncated, self._begun)
        self._rows.append((*row, step.next_obs) if self._off_policy else row)
        if step.ended and not self._off_policy:
            for i in np.flatnonzero(step.truncated).tolist():
                self._final[i].append(step.next_obs[i])
        return step.ended

    def close(self) -> HostRollout:
        """All of it, once the last step is taken."""
        columns = [None if column[0] is None else np.stack(column) for column in zip(*self._rows, strict=True)]
        if self._off_policy:
            return HostRollout(*columns)
        return HostRollout(*columns, last=self._vector.obs, final=self._final_observations())

    def _final_observations(self) -> np.ndarray:
        """The last observations of truncated episodes [S, N, ...].

        The program is compiled anew for another S, so S grows by doubling where an environment is truncated more often
        than its time limit says.
        """
        slots, most = self._slots, max(map(len, self._final))
        while slots < most:
            slots = max(1, 2 * slots)
        found = np.zeros((slots, self._vector.num, *self._vector.obs_shape), self._vector.obs.dtype)
        for i, observations in enumerate(self._final):
            for slot, observation in enumerate(observations):
                found[slot, i] = observation
        return found


def joined(parts: list[HostRollout]) -> HostRollout:
    """Rollouts of groups of environments as one, with the first group's environments before the second's."""
    if len(parts) == 1:
        return parts[0]
    most = max(0 if part.final is None else len(part.final) for part in parts)

    def column(name: str, arrays: tuple[Any, ...]) -> np.ndarray | None:
        if arrays[0] is None:
            return None
        if name == "final":
            arrays = tuple(np.pad(a, [(0, most - len(a)), *[(0, 0)] * (a.ndim - 1)]) for a in arrays)
        return np.concatenate(arrays, 0 if name == "last" else 1)

    return HostRollout(*(column(*each) for each in zip(HostRollout._fields, zip(*parts, strict=True), strict=True)))
