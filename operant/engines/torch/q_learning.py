"""What DQN and SARSA share: a Q-network, how they explore beside it, and the actor that plays it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import QNet, QuantileNet, mean_of_quantiles
from operant.engines.torch.normalize import ObservationNormalizer, RewardNormalizer
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.policies import Boltzmann, EpsilonGreedy, Policy
from operant.engines.torch.tracker import Tracker
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.envs.vector.episode_seeds import episode_seeds
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import ExploringAlgorithm
from operant.spec.settings.algorithms import DqnSpec


@dataclass(frozen=True)
class Exploration:
    """How a learner explores at one moment: its policy, what to log, and what it expects of values (and a mask)."""

    policy: Policy
    report: dict[str, float]
    expect: Callable[..., Tensor]


def explore(settings: ExploringAlgorithm, actions: int, frame: int) -> Exploration:
    """The exploration that the settings' schedule has for `frame`."""
    if settings.exploration == "boltzmann":
        heat = value_at(settings.temperature, frame)
        expect = partial(losses.boltzmann_value, temperature=heat)
        return Exploration(Boltzmann(actions, heat), {"explore/temperature": heat}, expect)
    chance = value_at(settings.epsilon, frame)
    expect = partial(losses.epsilon_greedy_value, epsilon=chance)
    return Exploration(EpsilonGreedy(actions, chance), {"explore/epsilon": chance}, expect)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> QNet | QuantileNet:
    """A fresh network for these observations and actions."""
    algorithm = spec.agent.algorithm
    if isinstance(algorithm, DqnSpec) and algorithm.distributional == "qr":
        return QuantileNet(spec.agent.net, obs_shape, actions.size, algorithm.quantiles)
    return QNet(spec.agent.net, obs_shape, actions.size)


def build_actor(spec: Spec, net: QNet | QuantileNet, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`; sampled play explores as much as training does at its end."""
    assert isinstance(spec.agent.algorithm, ExploringAlgorithm)
    normalizer = ObservationNormalizer(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    policy = explore(spec.agent.algorithm, actions.size, spec.env.max_frame).policy
    forward = forward_for_acting(net.greedy_layers())
    if isinstance(net, QuantileNet):
        forward = mean_of_quantiles(forward, actions.size)
    return Actor(forward, normalizer, policy)


class QLearner(ABC):
    """Environments, Q-network, optimizer and actor, in the order of creation on which a seed's weights depend."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

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
        self.net = self.build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        self.optimizer = FlatOptimizer(optimizer, [list(self.net.parameters())], [optimizer.lr])
        self.actor = self.build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        env = spec.env
        self.rewards = RewardNormalizer(env.num_envs, env.normalize_reward, gamma, env.clip_reward, replayed=replayed)
        self.rng_act = seeds.rng("act")
        self._exploring = settings
        self.exploration = self.explore_now()

    @abstractmethod
    def iterate(self) -> list[Ended]:
        """One round of play and learning; returns the episodes that ended."""

    def explore_now(self) -> Exploration:
        """The exploration that the schedule has for the frames played so far."""
        return explore(self._exploring, self.vector.actions.size, self.tracker.frames)
