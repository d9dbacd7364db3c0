"""The registry of algorithms.

Each algorithm is one class of settings and one entry in `ALGORITHMS`; the spec, its errors, its help and its JSON
Schema follow from these two. What must hold between its settings and others is in `validation`.
"""

from __future__ import annotations

from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.language_algorithms import VERIFIED
from operant.spec.settings.off_policy import CrossQSpec, DqnSpec, SacSpec, Td3Spec
from operant.spec.settings.on_policy import A2cSpec, RandomSpec, ReinforceSpec, SarsaSpec
from operant.spec.settings.ppo import PpoSilSpec, PpoSpec, SilSpec

ALGORITHMS: dict[str, type[Algorithm]] = {
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
    **VERIFIED,
}
