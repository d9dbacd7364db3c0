"""What DQN and SARSA have in common: a Q-network, how they explore beside it, and the actor that plays it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.nets import QNet, forward_for_acting
from operant.engines.torch.normalise import ObservationNormaliser
from operant.engines.torch.policies import Boltzmann, EpsilonGreedy, Policy
from operant.engines.torch.quantile import QuantileNet, mean_of_quantiles
from operant.envs.vector.actions import ActionMap
from operant.spec.fields import value_at
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
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    policy = explore(spec.agent.algorithm, actions.size, spec.env.max_frame).policy
    forward = forward_for_acting(net.greedy_layers())
    if isinstance(net, QuantileNet):
        forward = mean_of_quantiles(forward, actions.size)
    return Actor(forward, normaliser, policy)
