"""Steps of episodes that still go on: they wait here until it is known what came of them."""

from __future__ import annotations

import numpy as np

Rows = dict[str, np.ndarray]


class Unfinished:
    """For each environment, the steps of its current episode; `empty` are the arrays of no steps at all."""

    def __init__(self, num: int, empty: Rows) -> None:
        self._empty = empty
        self._parts: list[list[Rows]] = [[] for _ in range(num)]

    def extend(self, env: int, rows: Rows) -> None:
        """Add the steps that were played next."""
        self._parts[env].append({name: array.copy() for name, array in rows.items()})

    def close(self, env: int) -> Rows:
        """All steps of the episode, which is over."""
        whole = self._joined(self._parts[env])
        self._parts[env] = []
        return whole

    def _joined(self, parts: list[Rows]) -> Rows:
        return {name: np.concatenate([none, *(part[name] for part in parts)]) for name, none in self._empty.items()}

    def state(self) -> Rows:
        """The steps of all environments in a row, and how many each has."""
        episodes = [self._joined(parts) for parts in self._parts]
        first = next(iter(self._empty))
        return self._joined(episodes) | {"length": np.array([len(episode[first]) for episode in episodes])}

    def restore(self, state: Rows) -> None:
        """Take back what `state` gave."""
        ends = np.cumsum(state["length"])
        for env, (start, end) in enumerate(zip(ends - state["length"], ends, strict=True)):
            self._parts[env] = [{name: state[name][start:end] for name in self._empty}]
