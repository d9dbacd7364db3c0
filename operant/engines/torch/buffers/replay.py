"""Replay buffers: rings of transitions in contiguous arrays, sampled uniformly or by priority."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operant.spec.settings.memories import Memory, PrioritisedReplaySpec


@dataclass(frozen=True)
class Batch:
    """Sampled transitions.

    `weight` corrects for non-uniform sampling, `discount` is that of each row's successor, and
    `next_mask` says what is legal there; each is None where the memory has none.
    """

    index: np.ndarray
    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_obs: np.ndarray
    terminated: np.ndarray
    weight: np.ndarray | None
    discount: np.ndarray | None = None
    next_mask: np.ndarray | None = None


class Ring:
    """Rows of named arrays, the newest in the place of the oldest; drawn uniformly, or by priority."""

    def __init__(self, spec: Memory, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._batch_size = spec.batch_size
        self._combined = spec.combined
        self._capacity = spec.max_size
        self._next = 0
        self.filled = 0
        self.priorities = (
            Priorities(spec.max_size, spec.alpha, spec.epsilon) if isinstance(spec, PrioritisedReplaySpec) else None
        )

    def add(self, **rows: np.ndarray) -> None:
        """Store rows, of every array as many; no more than the ring holds."""
        count = len(next(iter(rows.values())))
        where = (self._next + np.arange(count)) % self._capacity
        for name, values in rows.items():
            self._arrays[name][where] = values
        if self.priorities is not None:
            self.priorities.add(where)
        self._next = int(self._next + count) % self._capacity
        self.filled = min(self.filled + count, self._capacity)

    def draw(self, rng: np.random.Generator, beta: float) -> tuple[np.ndarray, np.ndarray | None]:
        """Where a batch lies, drawn with replacement, and its importance weights of strength `beta`.

        With `combined`, the newest row takes the place of the last one drawn.
        """
        if self.priorities is None:
            index = rng.integers(self.filled, size=self._batch_size)
        else:
            index = self.priorities.draw(rng, self._batch_size, self.filled)
        if self._combined:
            index[-1] = (self._next - 1) % self._capacity
        return index, None if self.priorities is None else self.priorities.weights(index, self.filled, beta)

    def take(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """The rows at `index`."""
        return {name: array[index] for name, array in self._arrays.items()}

    @property
    def nbytes(self) -> int:
        """Memory of the ring, once it is full."""
        return sum(array.nbytes for array in self._arrays.values())

    def state(self) -> dict[str, np.ndarray]:
        """The filled part of the ring and where it is written next."""
        state = {name: array[: self.filled] for name, array in self._arrays.items()}
        state["next"] = np.array(self._next)
        if self.priorities is not None:
            state |= self.priorities.state()
        return state

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self._next = int(state["next"])
        for name, array in self._arrays.items():
            self.filled = len(state[name])
            array[: self.filled] = state[name]
        if self.priorities is not None:
            self.priorities.restore(state)


class Replay(Ring):
    """A ring of transitions: obs, action, reward, next_obs, terminated; discount and next_mask if kept."""

    def __init__(
        self,
        spec: Memory,
        obs_shape: tuple[int, ...],
        action: np.ndarray,
        discounts: bool = False,
        masked: int = 0,
    ) -> None:
        size = spec.max_size
        arrays = {
            "obs": np.zeros((size, *obs_shape), np.float32),
            "next_obs": np.zeros((size, *obs_shape), np.float32),
            "action": np.zeros((size, *action.shape), action.dtype),
            "reward": np.zeros(size, np.float32),
            "terminated": np.zeros(size, bool),
        }
        if discounts:
            arrays["discount"] = np.zeros(size, np.float32)
        if masked:
            arrays["next_mask"] = np.zeros((size, masked), bool)
        super().__init__(spec, arrays)

    def sample(self, rng: np.random.Generator, beta: float) -> Batch:
        """A batch of transitions; `beta` is the strength of the importance weights."""
        index, weight = self.draw(rng, beta)
        return Batch(index=index, weight=weight, **self.take(index))


class Priorities:
    """Sampling in proportion to (|error| + epsilon)^alpha (Schaul et al., 2016).

    Leaves lie in blocks of about sqrt(capacity). Changing a leaf sums its block again, and drawing
    picks a block and then a leaf, all in a few numpy calls: quicker here than a binary tree, whose
    every level is a call, and free of the drift of running differences.
    """

    def __init__(self, capacity: int, alpha: float, epsilon: float) -> None:
        self._width = max(1, int(np.ceil(np.sqrt(capacity))))
        blocks = -(-capacity // self._width)
        self._leaves = np.zeros((blocks, self._width), np.float64)
        self._sums = np.zeros(blocks, np.float64)
        self._largest = 1.0
        self._alpha = alpha
        self._epsilon = epsilon

    def add(self, index: np.ndarray) -> None:
        """New transitions get the largest priority seen, so that each is likely to be used once."""
        self._set(index, np.full(len(index), self._largest))

    def drop(self, index: np.ndarray) -> None:
        """These are not to be drawn any more."""
        self._set(index, np.zeros(len(index)))

    def update(self, index: np.ndarray, error: np.ndarray) -> None:
        """Give sampled transitions the priority of their new temporal-difference error."""
        priority = (np.abs(error).astype(np.float64) + self._epsilon) ** self._alpha
        self._largest = max(self._largest, float(priority.max()))
        self._set(index, priority)

    def draw(self, rng: np.random.Generator, count: int, filled: int) -> np.ndarray:
        """Indices by stratified sampling."""
        ends = np.cumsum(self._sums)
        total = ends[-1]
        mass = (np.arange(count) + rng.random(count)) * (total / count)
        block = np.minimum(np.searchsorted(ends, mass, side="right"), len(ends) - 1)
        inside = np.cumsum(self._leaves[block], axis=1)
        left = mass - (ends[block] - self._sums[block])
        leaf = np.minimum((inside <= left[:, None]).sum(1), self._width - 1)
        # Rounding at the very end of a block could name a leaf that was never filled.
        return np.minimum(block * self._width + leaf, filled - 1)

    def weights(self, index: np.ndarray, filled: int, beta: float) -> np.ndarray:
        """Importance weights (filled p)^-beta, scaled so that the largest of the batch is 1."""
        probability = self._flat[index] / self._sums.sum()
        weight = (filled * probability) ** -beta
        return (weight / weight.max()).astype(np.float32)

    @property
    def _flat(self) -> np.ndarray:
        return self._leaves.reshape(-1)

    def _set(self, index: np.ndarray, priority: np.ndarray) -> None:
        self._flat[index] = priority
        touched = index // self._width
        self._sums[touched] = self._leaves[touched].sum(1)

    def state(self) -> dict[str, np.ndarray]:
        return {"leaves": self._leaves, "sums": self._sums, "largest": np.array(self._largest)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._leaves[:], self._sums[:] = state["leaves"], state["sums"]
        self._largest = float(state["largest"])
