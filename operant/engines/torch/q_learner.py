"""What the learners of a Q-network, DQN and SARSA, are made of before they learn anything."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from operant.engines.torch.episode_seeds import episode_seeds
from operant.engines.torch.normalise import RewardNormaliser
from operant.engines.torch.optimise import FlatOptimiser
from operant.engines.torch.q_policy import Exploration, build_actor, build_net, explore
from operant.engines.torch.tracker import Tracker
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import ExploringAlgorithm


class QLearner(ABC):
    """Environments, Q-network, optimiser and actor, in the order of creation on which a seed's weights depend."""

    def __init__(
        self,
        spec: Spec,
        settings: ExploringAlgorithm,
        gamma: float,
        seeds: Seeds,
        device: torch.device,
        *,
        replayed: bool = False,
    ) -> None:
        self.spec = spec
        self.device = device
        self.tracker = Tracker()
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds))
        torch.manual_seed(seeds.integer("init"))
        self.net = build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        self.optimiser = FlatOptimiser(optimizer, [list(self.net.parameters())], [optimizer.lr])
        self.actor = build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        env = spec.env
        self.rewards = RewardNormaliser(env.num_envs, env.normalize_reward, gamma, env.clip_reward, replayed=replayed)
        self.rng_act = seeds.rng("act")
        self._exploring = settings
        self.exploration = self.explore_now()

    @abstractmethod
    def iterate(self) -> list[Ended]:
        """One round of play and learning; returns the episodes that ended."""

    def explore_now(self) -> Exploration:
        """The exploration that the schedule has for the frames played so far."""
        return explore(self._exploring, self.vector.actions.size, self.tracker.frames)
