"""The registry of algorithms.

Each algorithm is one class of settings and one entry in `BUILTIN`, or somebody's own class that a spec names by its
path; the spec, its errors, its help and its JSON Schema follow from these two. What must hold between its settings and
others is in `validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operant.errors import UsageError
from operant.spec.registry import PartRegistry
from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.language_algorithms import LANGUAGE
from operant.spec.settings.off_policy import CrossQSpec, DqnSpec, SacSpec, Td3Spec
from operant.spec.settings.on_policy import A2cSpec, RandomSpec, ReinforceSpec, SarsaSpec
from operant.spec.settings.ppo import PpoSilSpec, PpoSpec, SilSpec

BUILTIN: dict[str, type[Algorithm]] = {
    "ppo": PpoSpec,
    "dqn": DqnSpec,
    "a2c": A2cSpec,
    "reinforce": ReinforceSpec,
    "sac": SacSpec,
    "sarsa": SarsaSpec,
    "td3": Td3Spec,
    "crossq": CrossQSpec,
    "random": RandomSpec,
    "sil": SilSpec,
    "ppo_sil": PpoSilSpec,
    **LANGUAGE,
}


def _of_learner(found: Any, settings: type[Algorithm], path: str) -> type[Algorithm]:
    """The settings of an own algorithm, with its learner where the spec names that and not the settings."""
    if found is not settings:
        learners = {getattr(found, "ENGINE", "torch"): path}
        traits = {"__doc__": settings.__doc__ or found.__doc__, "__module__": settings.__module__, "LEARNERS": learners}
        return type(settings.__name__, (settings,), traits)
    if not settings.LEARNERS:
        raise UsageError(
            f"agent.algorithm.name: {path} names no learner",
            remedy=f'in {settings.__name__}: LEARNERS = {{"torch": "module:class"}}',
        )
    return settings


ALGORITHMS = PartRegistry("agent.algorithm.name", Algorithm, BUILTIN, _of_learner)


def with_learner(engine: str) -> dict[str, type[Algorithm]]:
    """The built-in algorithms that an engine can run, by name."""
    return {name: settings for name, settings in BUILTIN.items() if engine in settings.LEARNERS}


def resume_kind(spec: Mapping[str, Any]) -> str | None:
    """What a run's algorithm promises of a resume, "exact" or "warm"; None of an algorithm that is not known here."""
    algorithm = ALGORITHMS.get(spec.get("agent", {}).get("algorithm", {}).get("name"))
    return algorithm.resume_kind(spec) if algorithm else None
