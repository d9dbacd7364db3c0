"""What a person may say about self-imitation, beside what it is added to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from operant.spec.algorithm import Algorithm
from operant.spec.algorithm_misfits import batch_misfits
from operant.spec.child_marks import fixed, free
from operant.spec.misfit import Misfit
from operant.spec.on_policy import AdvantageAlgorithm
from operant.spec.proximal import ProximalAlgorithm

if TYPE_CHECKING:
    from operant.spec.schema import Spec


class ImitatingAlgorithm(Algorithm):
    """The base of algorithms that also imitate their own best past (abstract)."""

    USES_MEMORY = True
    MEMORY = "prioritised"
    TAKES_SEQUENCES = False

    sil_iter: int = free(
        default=4, ge=1, le=10_000, description="Gradient steps on past episodes after each on-policy update."
    )
    sil_policy_coef: float = free(default=1.0, ge=0, le=100, description="Weight of their policy loss.")
    sil_value_coef: float = free(default=0.01, ge=0, le=100, description="Weight of their value loss.")

    def fixed_here(self) -> Mapping[str, str]:
        return {**super().fixed_here(), "gamma": "the returns in the memory are discounted by it"}

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        return [*super().misfits(spec), *batch_misfits(spec)]


class SilSpec(ImitatingAlgorithm, AdvantageAlgorithm):
    """Advantage actor-critic with self-imitation of past episodes (Oh et al., 2018)."""

    name: Literal["sil"] = fixed("each algorithm keeps what it needs itself", default="sil", description="Algorithm.")


class PpoSilSpec(ImitatingAlgorithm, ProximalAlgorithm):
    """Proximal policy optimisation with self-imitation of past episodes (Oh et al., 2018)."""

    name: Literal["ppo_sil"] = fixed(
        "each algorithm keeps what it needs itself", default="ppo_sil", description="Algorithm."
    )
