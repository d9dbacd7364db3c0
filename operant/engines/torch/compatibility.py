"""Whether the algorithm and the network of a spec can learn in its environment; what cannot is refused at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import gymnasium as gym
from gymnasium.spaces import Box, Discrete

from operant.envs.check import check_env
from operant.envs.find import plays_natively
from operant.envs.gym import observation_shape
from operant.envs.images import check_network
from operant.envs.vector.masks import offers_mask
from operant.errors import UsageError
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.off_policy import CrossQSpec, TwinAlgorithm
from operant.spec.settings.on_policy import EpisodicAlgorithm, ReinforceSpec


@dataclass(frozen=True)
class Facts:
    """What the rules ask of an environment."""

    env: str
    actions: gym.Space
    is_limited: bool
    is_masked: bool


def check_compatibility(spec: Spec) -> None:
    """`UsageError` for an environment that is unknown, broken, or of the wrong kind for this spec."""
    env = check_env(spec.env)
    actions = env.action_space
    # Atari's emulator cuts a game itself.
    is_limited = plays_natively(spec.env) or (env.spec is not None and env.spec.max_episode_steps is not None)
    facts = Facts(spec.env.name, actions, is_limited, isinstance(actions, Discrete) and offers_mask(env))
    shape = observation_shape(env)
    env.close()
    check_network(spec, shape)
    for refusal in refusals(spec, facts):
        raise refusal


def refusals(spec: Spec, facts: Facts) -> Iterator[UsageError]:
    """Everything that is not compatible, the gravest first."""
    if not isinstance(facts.actions, Discrete | Box):
        yield UsageError(f"env.name: {facts.env} has actions {facts.actions}, which no algorithm here supports")
    algorithm, name = spec.agent.algorithm, spec.agent.algorithm.name
    if "torch" not in algorithm.LEARNERS:
        yield UsageError(f"agent.algorithm.name: the torch engine has no learner of {name}", remedy="-s engine=auto")
    yield from _kinds_of_action(algorithm, facts)
    yield from _pictures(spec, facts)
    yield from _whole_episodes(spec, facts)
    if facts.is_masked and "torch" not in algorithm.TAKES_MASKS:
        yield UsageError(
            f"agent.algorithm: {facts.env} says which actions are legal, and {name} does not listen",
            remedy="-s agent.algorithm.name=ppo, which does; so do a2c, dqn, reinforce and sarsa",
        )


def _kinds_of_action(algorithm: Algorithm, facts: Facts) -> Iterator[UsageError]:
    name, actions = algorithm.name, facts.actions
    if algorithm.ACTIONS == "discrete" and not isinstance(actions, Discrete):
        yield UsageError(
            f"agent.algorithm: {name} chooses among discrete actions, but {facts.env} has actions {actions}",
            remedy="-s agent.algorithm.name=ppo, or an environment with discrete actions",
        )
    if algorithm.ACTIONS == "continuous" and not isinstance(actions, Box):
        yield UsageError(
            f"agent.algorithm: {name} chooses real actions, but {facts.env} has actions {actions}",
            remedy="-s agent.algorithm.name=sac, or an environment with continuous actions",
        )
    if algorithm.NEEDS_BOUNDS and isinstance(actions, Box) and not actions.is_bounded():
        yield UsageError(
            f"agent.algorithm: {name} needs bounds to act within, but {facts.env} has actions {actions}",
            remedy="-s agent.algorithm.name=ppo, or an environment with bounded actions",
        )


def _pictures(spec: Spec, facts: Facts) -> Iterator[UsageError]:
    """Critics that are asked about an action too cannot read images."""
    algorithm, net = spec.agent.algorithm, spec.agent.net
    if not net.READS_IMAGES or not isinstance(algorithm, TwinAlgorithm):
        return
    name = algorithm.name
    if isinstance(algorithm, CrossQSpec):
        yield UsageError(
            f"agent.net.type: {name} renormalizes perceptrons, and {net.type} is none",
            remedy="-s agent.algorithm.name=sac, which reads images",
        )
    if isinstance(facts.actions, Box):
        yield UsageError(
            f"agent.net.type: {name} reads images only where actions are discrete, but {facts.env} has {facts.actions}",
            remedy="-s agent.algorithm.name=ppo",
        )


def _whole_episodes(spec: Spec, facts: Facts) -> Iterator[UsageError]:
    """What learns from whole episodes needs ones that end."""
    algorithm = spec.agent.algorithm
    if isinstance(algorithm, ReinforceSpec):
        learns_from_whole = algorithm.time_horizon is None
    else:
        learns_from_whole = isinstance(algorithm, EpisodicAlgorithm) and algorithm.training_episodes is not None
    if learns_from_whole and not facts.is_limited:
        yield UsageError(
            f"env.max_t: {algorithm.name} learns from whole episodes, but those of {facts.env} may never end",
            remedy="-s env.max_t=1000",
        )
