"""The base classes of every algorithm's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from operant.spec.fields import Closed, Linear, Schedule, Scheduled, fixed, free


def algorithm_name(name: str) -> Any:
    """The field that names an algorithm."""
    return fixed("each algorithm keeps what it needs itself", default=name, description="Algorithm.")


class Algorithm(Closed):
    """The base of every algorithm's settings (abstract).

    `ENGINE` names the engine that runs it; `RESUME` is "exact" when a resumed run equals one that
    was never stopped and "warm" otherwise; `TAKES_MASKS` is whether it keeps to the legal actions
    of environments that name them, and `TAKES_SEQUENCES` whether it can train a recurrent network;
    `MEMORY` is the memory that it has if none is named.
    """

    ENGINE: ClassVar[str]
    RESUME: ClassVar[Literal["exact", "warm"]]
    USES_MEMORY: ClassVar[bool]
    MEMORY: ClassVar[str] = "replay"
    TAKES_MASKS: ClassVar[bool] = False
    TAKES_SEQUENCES: ClassVar[bool] = False

    name: Any  # each algorithm narrows it to its own Literal

    @classmethod
    def resume_kind(cls, spec: Mapping[str, Any]) -> str:
        """`RESUME`, or what becomes of it under a spec, in plain data as a run has kept it."""
        del spec
        return cls.RESUME

    def inert(self) -> Mapping[str, str]:
        """The dotted paths of settings that this algorithm would never read, each with the reason."""
        raise NotImplementedError


class ExploringAlgorithm(Algorithm):
    """The base of algorithms that play action values and must explore beside them (abstract)."""

    exploration: Literal["epsilon_greedy", "boltzmann"] = free(
        default="epsilon_greedy",
        description="Mostly the best action, sometimes any; or each with probability exp(Q / temperature), scaled.",
    )
    epsilon: Annotated[Schedule, Scheduled(ge=0, le=1)] = free(
        default=Linear(start=1.0, end=0.05, frames=10_000),
        description="Probability of a random action, per environment.",
    )
    temperature: Annotated[Schedule, Scheduled(ge=0, le=1e6)] = free(
        default=Linear(start=1.0, end=0.08, frames=10_000),
        description="How evenly `boltzmann` plays, in units of value; 0 is greedy.",
    )

    def idle_exploration(self) -> Mapping[str, str]:
        """The setting of the other kind of exploration, with the reason why nothing reads it."""
        other = "temperature" if self.exploration == "epsilon_greedy" else "epsilon"
        return {f"agent.algorithm.{other}": f"exploration is {self.exploration}"}
