"""Where an off-policy learner's steps go: a replay of vectors, or one of frames where observations are images."""

from __future__ import annotations

import numpy as np

from operant.engines.torch.frames import FrameReplay
from operant.engines.torch.nstep import NStep
from operant.engines.torch.replay import Replay
from operant.envs.vector.autoreset import AutoresetVectorEnv, Step
from operant.spec.settings.memories import PrioritisedReplaySpec, ReplaySpec

Rows = dict[str, np.ndarray]


class Storage:
    """The replay, and the rows that still wait for `n_step` steps where it does not join them itself.

    With `masks` it also keeps what was legal in each successor, where the environment says so.
    """

    def __init__(
        self,
        memory: ReplaySpec | PrioritisedReplaySpec,
        vector: AutoresetVectorEnv,
        n_step: int = 1,
        gamma: float = 1.0,
        masks: bool = False,
    ) -> None:
        shape, actions = vector.obs_shape, vector.actions
        self._masks = masks
        masked = 0 if not masks or vector.mask is None else actions.size
        action = np.zeros((), np.int64) if actions.discrete else np.zeros(actions.size, np.float32)
        self.lookahead: NStep | None = None
        self.replay: Replay | FrameReplay
        if vector.obs.dtype == np.uint8:
            self.replay = FrameReplay(memory, vector.num, shape, vector.env.stack, action, n_step, gamma, masked)
        else:
            self.replay = Replay(memory, shape, action, n_step > 1, masked)
            self.lookahead = NStep(vector.num, n_step, gamma, shape, action) if n_step > 1 else None

    def add(self, obs: np.ndarray, action: np.ndarray, reward: np.ndarray, step: Step) -> None:
        """Keep one step of every environment; `reward` is what is kept of its rewards."""
        rows: Rows = {
            "obs": obs,
            "action": action,
            "reward": reward,
            "next_obs": step.next_obs,
            "terminated": step.terminated,
        }
        if self._masks and step.next_mask is not None:
            rows["next_mask"] = step.next_mask
        if isinstance(self.replay, FrameReplay):
            over = np.isin(np.arange(len(obs)), [ended.index for ended in step.ended])
            self.replay.record(rows, step.truncated, over)
        else:
            self.replay.add(**(rows if self.lookahead is None else self.lookahead.push(rows, step.truncated)))
