"""Where a continuous-control learner's transitions come from and where they are kept.

Environments, reward scaling and replay belong together: each step played is a row stored, and all
of it survives a restart. What SAC, CrossQ and TD3 do with a sampled batch is in their own files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch.actor import Actor
from operant.engines.torch.arithmetic import Arithmetic, replay_arithmetic
from operant.engines.torch.codec import Stateful
from operant.engines.torch.episode_seeds import episode_seeds
from operant.engines.torch.normalise import RewardNormaliser
from operant.engines.torch.storage import Storage
from operant.engines.torch.tracker import Tracker
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.run.seeding import Seeds
from operant.spec.fields import value_at
from operant.spec.schema import Spec
from operant.spec.settings.memories import PrioritisedReplaySpec
from operant.spec.settings.off_policy import TwinAlgorithm


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


class Experience:
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
        self.rewards = RewardNormaliser(
            env.num_envs, env.normalize_reward, settings.gamma, env.clip_reward, replayed=True
        )
        self._rng_act = seeds.rng("act")
        self._rng_sample = seeds.rng("sample")

    def play(self, actor: Actor) -> list[Ended]:
        """Play `training_frequency` frames, store and count them; returns the episodes that ended."""
        steps = self.settings.training_frequency // self.vector.num
        ended: list[Ended] = []
        for action_noise in actor.policy.noise(self._rng_act, (steps, self.vector.num)):
            obs = self.vector.obs
            actor.normaliser.learn(obs)
            action = self._uniform() if self.warming_up else actor.draw(actor.normaliser(obs), action_noise)
            step = self.vector.step(action)
            self.rewards.learn(step.reward, step.terminated | step.truncated)
            self.storage.add(obs, action, self.rewards.kept(step.reward), step)
            ended += step.ended
        self.tracker.frames += self.settings.training_frequency
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
        """A batch from the replay, normalised as the actor sees it now."""
        memory, frame = self.memory, self.tracker.frames
        beta = value_at(memory.beta, frame) if isinstance(memory, PrioritisedReplaySpec) else 0.0
        batch = self.replay.sample(self._rng_sample, beta)
        return Sample(
            index=batch.index,
            obs=self._seen(actor, batch.obs),
            action=self.tensor(batch.action),
            reward=self.tensor(self.rewards.scaled(batch.reward)),
            next_obs=self._seen(actor, batch.next_obs),
            terminated=self.tensor(batch.terminated),
            weight=None if batch.weight is None else self.tensor(batch.weight),
        )

    def _seen(self, actor: Actor, obs: np.ndarray) -> Tensor:
        """Observations as the networks take them: a perceptron takes images as vectors."""
        seen = self.tensor(actor.normaliser(obs))
        return seen if seen.ndim == 2 or self.spec.agent.net.READS_IMAGES else seen.flatten(1).float()

    def learnt(self, batch: Sample, error: Tensor) -> None:
        """Tell the replay the new temporal-difference errors [2, B] of a batch: of both critics, their mean size."""
        if self.replay.priorities is not None:
            self.replay.priorities.update(batch.index, error.detach().abs().mean(0).cpu().numpy())

    def tensor(self, array: np.ndarray) -> Tensor:
        """`array` on the learner's device."""
        return torch.from_numpy(array).to(self.device)

    def parts(self) -> Mapping[str, Stateful]:
        """What a checkpoint must hold."""
        return {"env": self.vector, "reward": self.rewards, "replay": self.replay}

    def streams(self) -> Mapping[str, np.random.Generator]:
        """The random streams of play and sampling."""
        return {"act": self._rng_act, "sample": self._rng_sample}

    def arithmetic(self) -> Arithmetic:
        """How frames become gradient steps, and how large the replay will be."""
        return replay_arithmetic(self.spec, self.settings, self.replay)
