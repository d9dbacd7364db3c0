"""From a spec to a learner; the settings class of an algorithm names its learner."""

from __future__ import annotations

from operant.engines.jax.host.env import describe_host_env
from operant.engines.jax.learner import Learner
from operant.envs.functional.find import find_functional, steps_on_host
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import ALGORITHMS


def learner_class(algorithm: str) -> type[Learner]:
    """The learner of an algorithm by its name in a spec."""
    return ALGORITHMS.find(algorithm).learner("jax")


def build_learner(spec: Spec) -> Learner:
    """The learner of a spec."""
    env = describe_host_env(spec.env) if steps_on_host(spec.env) else find_functional(spec.env)
    return learner_class(spec.agent.algorithm.name)(spec, env)
