"""Collection for off-policy learners: each step played is a row of a replay buffer.

Environments, reward scaling and replay belong together, and all of it survives a restart. What SAC,
CrossQ and TD3 do with a sampled batch is in their own files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.buffers.frames import FrameReplay
from operant.engines.torch.buffers.nstep import NStep
from operant.engines.torch.buffers.replay import Replay
from operant.engines.torch.checkpoint import Snapshot, Stateful, Weights
from operant.engines.torch.normalize import RewardNormalizer
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended, Step
from operant.envs.vector.episode_seeds import episode_seeds
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.memories import Memory, PrioritisedReplaySpec
from operant.spec.settings.off_policy import DqnSpec, TwinAlgorithm


@dataclass(frozen=True)
class Sample:
    """A batch of transitions as tensors, with observations as the networks see them."""

    index: np.ndarray
    obs: Tensor
    action: Tensor
    reward: Tensor
    next_obs: Tensor
    terminated: Tensor
    weight: Tensor | None


class OffPolicyCollector:
    """Environments and the replay that they fill; actions are uniform until `training_start`."""

    def __init__(self, spec: Spec, settings: TwinAlgorithm, seeds: Seeds, device: torch.device) -> None:
        assert spec.agent.memory is not None, "the schema gives every off-policy algorithm a memory"
        self.spec = spec
        self.settings = settings
        self.memory = spec.agent.memory
        self.device = device
        self.tracker = Tracker()
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds))
        self.storage = Storage(self.memory, self.vector)
        self.replay = self.storage.replay
        env = spec.env
        self.rewards = RewardNormalizer(
            env.num_envs, env.normalize_reward, settings.gamma, env.clip_reward, replayed=True
        )
        self._rng_act = seeds.rng("act")
        self._rng_sample = seeds.rng("sample")

    def collect(self, actor: Actor) -> list[Ended]:
        """Play to the next round of gradient steps, store and count the frames; returns the episodes that ended."""
        steps = steps_to_round(self.tracker.frames, self.settings.training_frequency, self.vector.num)
        ended: list[Ended] = []
        for action_noise in actor.policy.noise(self._rng_act, (steps, self.vector.num)):
            obs = self.vector.obs
            actor.obs_normalizer.update(obs)
            action = self._uniform() if self.warming_up else actor.draw(actor.obs_normalizer(obs), action_noise)
            step = self.vector.step(action)
            self.rewards.update(step.reward, step.terminated | step.truncated)
            self.storage.add(obs, action, self.rewards.kept(step.reward), step)
            ended += step.ended
        self.tracker.frames += steps * self.vector.num
        for over in ended:
            self.tracker.ended(over.score, over.length)
        return ended

    @property
    def warming_up(self) -> bool:
        """Whether the replay still waits for its first `training_start` frames."""
        return self.tracker.frames < self.settings.training_start

    def _uniform(self) -> np.ndarray:
        num, actions = self.vector.num, self.vector.actions
        if actions.discrete:
            return self._rng_act.integers(actions.size, size=num)
        return self._rng_act.uniform(-1, 1, (num, actions.size)).astype(np.float32)

    def sample(self, actor: Actor) -> Sample:
        """A batch from the replay, normalized as the actor sees it now."""
        memory, frame = self.memory, self.tracker.frames
        beta = value_at(memory.beta, frame) if isinstance(memory, PrioritisedReplaySpec) else 0.0
        batch = self.replay.sample(self._rng_sample, beta)
        return Sample(
            index=batch.index,
            obs=self._observations(actor, batch.obs),
            action=self.tensor(batch.action),
            reward=self.tensor(self.rewards.scaled(batch.reward)),
            next_obs=self._observations(actor, batch.next_obs),
            terminated=self.tensor(batch.terminated),
            weight=None if batch.weight is None else self.tensor(batch.weight),
        )

    def _observations(self, actor: Actor, obs: np.ndarray) -> Tensor:
        """Observations as the networks take them: a perceptron takes images as vectors."""
        batch = self.tensor(actor.obs_normalizer(obs))
        return batch if batch.ndim == 2 or self.spec.agent.net.READS_IMAGES else batch.flatten(1).float()

    def update_priorities(self, batch: Sample, error: Tensor) -> None:
        """Give the replay the new temporal-difference errors [2, B] of a batch: of both critics, their mean size."""
        if self.replay.priorities is not None:
            self.replay.priorities.update(batch.index, error.detach().abs().mean(0).cpu().numpy())

    def tensor(self, array: np.ndarray) -> Tensor:
        """`array` on the learner's device."""
        return torch.from_numpy(array).to(self.device)

    def snapshot(
        self, policy: nn.Module, actor: Actor, learner: Mapping[str, Stateful], noise: np.random.Generator
    ) -> Snapshot:
        """Everything that must survive a restart: the policy, these parts of its learner, play and replay."""
        return Snapshot(
            policy={"net": Weights(policy), "obs": actor.obs_normalizer},
            learner={**learner, "env": self.vector, "reward": self.rewards, "replay": self.replay},
            tracker=self.tracker,
            streams={"noise": noise, "act": self._rng_act, "sample": self._rng_sample},
        )

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps, and how large the replay will be."""
        return replay_update_counts(self.spec, self.settings, self.replay)


Rows = dict[str, np.ndarray]


def critic_step(
    collector: OffPolicyCollector, optimizer: FlatOptimizer, batch: Sample, q: Tensor, target: Tensor
) -> Tensor:
    """Descend both critics' errors [2, B] towards `target` [B]; returns loss, mean value and gradient norm."""
    error = q - target
    loss = losses.weighted_td_loss(error, batch.weight, collector.settings.loss)
    norm = optimizer.step(loss)
    collector.update_priorities(batch, error)
    return torch.stack((loss.detach(), q.detach().mean(), norm))


class Storage:
    """The replay, and the rows that still wait for `n_step` steps where it does not join them itself.

    With `masks` it also keeps what was legal in each successor, where the environment says so.
    """

    def __init__(
        self,
        memory: Memory,
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
        kind = memory.buffer("torch")
        if kind is Replay and vector.obs.dtype == np.uint8:
            self.replay = FrameReplay(memory, vector.num, shape, vector.env.stack, action, n_step, gamma, masked)
        else:
            self.replay = kind(memory, shape, action, n_step > 1, masked)
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


def steps_to_round(frames: int, frequency: int, num: int) -> int:
    """Steps of `num` environments from `frames` until the next multiple of `frequency` frames is reached."""
    return -(-(frequency - frames % frequency) // num)


def replay_update_counts(spec: Spec, settings: DqnSpec | TwinAlgorithm, replay: Replay | FrameReplay) -> UpdateCounts:
    """How frames become gradient steps, and how large the replay will be."""
    memory, frames = spec.agent.memory, spec.env.max_frame
    assert memory is not None, "the schema gives every off-policy algorithm a memory"
    steps = max(0, frames - settings.training_start) // settings.training_frequency * settings.training_iter
    ratio = settings.training_iter * memory.batch_size / settings.training_frequency
    lines = [
        f"{steps:,} gradient steps of {memory.batch_size} from frame {settings.training_start:,} on,"
        f" {settings.training_iter} every {settings.training_frequency} frames",
        f"each transition is learnt from about {ratio:g} times; replay of {memory.max_size:,} transitions",
    ]
    held = sum(array.nbytes for array in replay.state().values())
    if isinstance(replay, FrameReplay):
        lines.append(frame_cost(spec, replay))
        growth = int(replay.nbytes * min(1.0, frames / memory.max_size)) - held
    else:
        growth = int(held * (min(frames, memory.max_size) / max(replay.filled, 1) - 1))
    return UpdateCounts(lines, updates=steps, warm_up=settings.training_start, growth=growth)


def frame_cost(spec: Spec, replay: FrameReplay) -> str:
    """Memory of a replay of images, and what its checkpoints cost."""
    size, kept = replay.nbytes / 1e9, spec.meta.keep_checkpoints + 1
    saves = spec.env.max_frame // spec.meta.save_frequency
    return (
        f"its frames are stored once: {size:.1f} GB of memory when full, and as much in every checkpoint"
        f" ({saves:,} are written, {kept} kept: up to {size * kept:.1f} GB of disk)"
    )
