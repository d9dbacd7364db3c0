"""Replay of images: every frame is stored once, as bytes, and observations are put together when they are sampled.

A stack of four frames shares three of them with the next one, and a transition's successor is the
observation of the transition after it. So instead of two stacks per transition each environment has
a ring of single frames, an eighth of the memory: one frame per step, and the whole first stack where
an episode begins, so that no observation reaches into another episode.
"""

from __future__ import annotations

import numpy as np

from operant.engines.torch.buffers.replay import Batch, Priorities
from operant.spec.settings.memories import Memory, PrioritisedReplaySpec

Rows = dict[str, np.ndarray]
KEPT = {"action", "reward", "terminated", "next_mask"}


class FrameReplay:
    """A ring of frames per environment; `max_size` frames in all.

    Slot p of a ring holds a frame and, where an action followed, what it led to: the observation is
    the `stack` frames that end at p, and its successor ends at p + 1. With `n_step` above 1 a sampled
    transition sums up to that many rewards, fewer where the episode ends first.
    """

    def __init__(
        self,
        spec: Memory,
        num: int,
        obs_shape: tuple[int, ...],
        stack: int,
        action: np.ndarray,
        n_step: int = 1,
        gamma: float = 1.0,
        masked: int = 0,
    ) -> None:
        self.num, self.stack, self.n_step, self._gamma = num, stack, n_step, gamma
        self.length = max(spec.max_size // num, 2 * stack + n_step)
        frame = obs_shape if stack == 1 else obs_shape[1:]
        slots = (num, self.length)
        self._arrays = {
            "frame": np.zeros((*slots, *frame), np.uint8),
            "action": np.zeros((*slots, *action.shape), action.dtype),
            "reward": np.zeros(slots, np.float32),
            "terminated": np.zeros(slots, bool),
            "ended": np.zeros(slots, bool),
            "ready": np.zeros(slots, bool),
        }
        if masked:
            self._arrays["next_mask"] = np.zeros((*slots, masked), bool)
        self._next = np.zeros(num, np.int64)
        self._used = np.zeros(num, np.int64)
        self._waiting = np.zeros(num, np.int64)
        self._begins = np.ones(num, bool)
        self._newest = 0
        self.filled = 0
        self._batch_size = spec.batch_size
        self._combined = spec.combined
        prioritised = isinstance(spec, PrioritisedReplaySpec)
        self.priorities = Priorities(num * self.length, spec.alpha, spec.epsilon) if prioritised else None

    def record(self, rows: Rows, truncated: np.ndarray, over: np.ndarray) -> None:
        """Store one step of every environment; `over` says which restart, so that another episode's frames follow."""
        ends = rows["terminated"] | truncated
        for i in range(self.num):
            if self._begins[i]:
                for frame in self._frames_of(rows["obs"][i]):
                    self._push(i, frame)
            at = int(self._next[i] - 1) % self.length
            for name in KEPT & rows.keys():
                self._arrays[name][i, at] = rows[name][i]
            self._arrays["ended"][i, at] = ends[i]
            self._push(i, self._frames_of(rows["next_obs"][i])[-1])
            self._complete(i, at, bool(ends[i]))
        self._begins[:] = over

    def _frames_of(self, obs: np.ndarray) -> np.ndarray:
        return obs[None] if self.stack == 1 else obs

    def _push(self, i: int, frame: np.ndarray) -> None:
        """Write a frame; transitions whose observation it was part of can no longer be put together."""
        at = int(self._next[i])
        self._arrays["frame"][i, at] = frame
        self._set_ready(i, (at + np.arange(self.stack)) % self.length, False)
        self._next[i] = (at + 1) % self.length
        self._used[i] = min(self._used[i] + 1, self.length)

    def _complete(self, i: int, at: int, ends: bool) -> None:
        """Transitions become ready once `n_step` steps followed them, or their episode ended."""
        self._waiting[i] += 1
        waiting = int(self._waiting[i])
        if ends:
            done, self._waiting[i] = (at - np.arange(waiting)) % self.length, 0
        elif waiting == self.n_step:
            done, self._waiting[i] = np.array([(at - waiting + 1) % self.length]), waiting - 1
        else:
            return
        self._set_ready(i, done, True)
        self._newest = i * self.length + int(done[0])

    def _set_ready(self, i: int, slots: np.ndarray, ready: bool) -> None:
        changed = slots[self._arrays["ready"][i, slots] != ready]
        if len(changed) == 0:
            return
        self._arrays["ready"][i, changed] = ready
        self.filled += len(changed) if ready else -len(changed)
        if self.priorities is not None:
            self.priorities.add(i * self.length + changed) if ready else self.priorities.drop(i * self.length + changed)

    def sample(self, rng: np.random.Generator, beta: float) -> Batch:
        """A batch drawn with replacement; `beta` is the strength of the importance weights."""
        ready = self._arrays["ready"].reshape(-1)
        if self.priorities is None:
            index = self._draw(rng, ready)
        else:
            index = self.priorities.draw(rng, self._batch_size, len(ready))
            # Rounding at the end of a block could name a slot that is not ready.
            index = np.where(ready[index], index, self._newest)
        if self._combined:
            index[-1] = self._newest
        weight = None if self.priorities is None else self.priorities.weights(index, self.filled, beta)
        return self._batch(index, weight)

    def _draw(self, rng: np.random.Generator, ready: np.ndarray) -> np.ndarray:
        """Slots uniformly among those that are ready: the others are drawn again."""
        longest = int(self._used.max())
        index = np.zeros(self._batch_size, np.int64)
        left = np.ones(self._batch_size, bool)
        while left.any():
            drawn = rng.integers(self.num * longest, size=int(left.sum()))
            index[left] = drawn // longest * self.length + drawn % longest
            left = ~ready[index]
        return index

    def _batch(self, index: np.ndarray, weight: np.ndarray | None) -> Batch:
        env, at = np.divmod(index, self.length)
        reward, discount = np.zeros(len(index), np.float64), np.ones(len(index), np.float64)
        going, last = np.ones(len(index), bool), at
        for k in range(self.n_step):
            now = (at + k) % self.length
            reward += np.where(going, discount * self._arrays["reward"][env, now], 0.0)
            discount = np.where(going, discount * self._gamma, discount)
            last = np.where(going, now, last)
            going &= ~self._arrays["ended"][env, now]
        return Batch(
            index=index,
            obs=self._observation(env, at),
            action=self._arrays["action"][env, at],
            reward=reward.astype(np.float32),
            next_obs=self._observation(env, last + 1),
            terminated=self._arrays["terminated"][env, last],
            weight=weight,
            discount=discount.astype(np.float32) if self.n_step > 1 else None,
            next_mask=self._arrays["next_mask"][env, last] if "next_mask" in self._arrays else None,
        )

    def _observation(self, env: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The stacks of frames that end at these slots."""
        if self.stack == 1:
            return self._arrays["frame"][env, at % self.length]
        slots = at[:, None] + np.arange(1 - self.stack, 1)
        return self._arrays["frame"][env[:, None], slots % self.length]

    @property
    def nbytes(self) -> int:
        """Memory of the rings, once they are full."""
        return sum(array.nbytes for array in self._arrays.values())

    def _cursors(self) -> Rows:
        return {"next": self._next, "used": self._used, "waiting": self._waiting, "begins": self._begins}

    def state(self) -> Rows:
        """The used part of the rings and where they are written next."""
        longest = int(self._used.max())
        state = {name: array[:, :longest] for name, array in self._arrays.items()}
        state |= self._cursors()
        state["newest"] = np.array(self._newest)
        if self.priorities is not None:
            state |= self.priorities.state()
        return state

    def restore(self, state: Rows) -> None:
        """Take back what `state` gave."""
        for name, array in self._arrays.items():
            array[:, : state[name].shape[1]] = state[name]
        for name, array in self._cursors().items():
            array[:] = state[name]
        self._newest = int(state["newest"])
        self.filled = int(self._arrays["ready"].sum())
        if self.priorities is not None:
            self.priorities.restore(state)
