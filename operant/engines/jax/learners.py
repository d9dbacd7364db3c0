"""From a spec to a learner: the one place that knows every algorithm of this engine."""

from __future__ import annotations

from operant.engines.jax import dqn, ppo, sac
from operant.engines.jax.learner import Learner
from operant.envs.functional.find import find_functional
from operant.spec.schema import Spec

LEARNERS: dict[str, type[Learner]] = {
    "ppo": ppo.Ppo,
    "dqn": dqn.Dqn,
    "sac": sac.Sac,
}


def build_learner(spec: Spec) -> Learner:
    """The learner of a spec."""
    return LEARNERS[spec.agent.algorithm.name](spec, find_functional(spec.env))
