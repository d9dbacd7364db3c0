"""What DQN and SARSA have in common: a Q-network, and the actor that plays it epsilon-greedily."""

from __future__ import annotations

from operant.engines.deep.actor import Actor
from operant.engines.deep.nets import QNet, forward_for_acting
from operant.engines.deep.normalise import ObservationNormaliser
from operant.engines.deep.policies import EpsilonGreedy
from operant.envs.gym import ActionMap
from operant.spec.algorithms import DqnSpec
from operant.spec.fields import value_at
from operant.spec.on_policy import SarsaSpec
from operant.spec.schema import Spec


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> QNet:
    """A fresh network for these observations and actions."""
    return QNet(spec.agent.net, obs_shape, actions.size)


def build_actor(spec: Spec, net: QNet, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`; sampled play explores as much as training does at its end."""
    assert isinstance(spec.agent.algorithm, DqnSpec | SarsaSpec)
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    policy = EpsilonGreedy(actions.size, value_at(spec.agent.algorithm.epsilon, spec.env.max_frame))
    return Actor(forward_for_acting(net.greedy_layers()), normaliser, policy)
