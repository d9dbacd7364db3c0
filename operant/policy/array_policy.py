"""Trained policies as functions of numpy arrays, whichever engine computes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.policy.network import Network


@dataclass(frozen=True)
class Recording:
    """Observations [T, N, ...] of N environments at play, which of them begin episodes, and what was legal."""

    obs: np.ndarray
    begun: np.ndarray
    mask: np.ndarray | None


class ArrayPolicy(ABC):
    """A policy that acts on observations as the environment gives them, with actions as its `step` takes them.

    Normalization and action scaling are inside. One observation or a batch, told apart by shape. A recurrent policy
    keeps a hidden state for each row of the batch: call `reset` where episodes begin.
    """

    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype
    recurrent: bool = False

    def __init__(self) -> None:
        self._rows: int | None = None
        self._begun: np.ndarray | None = None
        self.seed(0)

    def act(self, obs: Any, deterministic: bool = True, mask: Any = None) -> Any:
        """The action for one observation, or an array of one for each of a batch.

        Deterministic actions are those of evaluation; the others are drawn as in training, from the stream of `seed`.
        `mask` says which discrete actions are legal.
        """
        batch = self._array(obs)
        single = batch.ndim == len(self.obs_shape)
        if single:
            batch = batch[None]
        legal = None if mask is None else np.asarray(mask, bool).reshape(len(batch), -1)
        actions = self._act(batch, deterministic, legal, self._begins(len(batch)))
        return actions[0] if single else np.asarray(actions)

    def reset(self, where: Any = None) -> None:
        """Begin new episodes, in all rows or only `where` true; only recurrent policies remember anything."""
        if where is None or self._rows is None:
            self._rows, self._begun = None, None
        else:
            marked = np.asarray(where, bool).reshape(self._rows)
            self._begun = marked if self._begun is None else self._begun | marked

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Begin the stream of sampled actions anew."""

    @abstractmethod
    def network(self) -> Network:
        """The policy as a list of layers; `UsageError` where it cannot be said as one."""

    @abstractmethod
    def outputs(self, obs: np.ndarray, begun: np.ndarray) -> np.ndarray:
        """Logits, action values or means of a batch; hidden states move on."""

    @abstractmethod
    def record(self, steps: int, num: int, seed: int) -> Recording:
        """Observations of `num` environments of the run, played `steps` steps by sampled actions."""

    @abstractmethod
    def _act(self, obs: np.ndarray, deterministic: bool, mask: np.ndarray | None, begun: np.ndarray) -> Any:
        """One action for each row, as the environment's `step` takes it."""

    def _array(self, obs: Any) -> np.ndarray:
        array = np.asarray(obs, self.obs_dtype)
        if array.shape == self.obs_shape or array.shape[1:] == self.obs_shape:
            return array
        raise UsageError(
            f"the policy takes observations of shape {self.obs_shape}, or a batch of them, not {array.shape}",
            remedy="give it what the run's own environment gives",
        )

    def _begins(self, rows: int) -> np.ndarray:
        """Which rows begin an episode at this call: all at the first one, then those that were reset."""
        if self.recurrent and self._rows not in (None, rows):
            raise UsageError(
                f"a recurrent policy has hidden states of {self._rows} rows, and was given {rows}",
                remedy="policy.reset() where the number of environments changes",
            )
        begun = np.ones(rows, bool) if self._rows is None else self._begun
        self._rows, self._begun = rows, None
        return np.zeros(rows, bool) if begun is None else begun
