"""What a person may say about how learners of action values explore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from operant.spec.algorithm import Algorithm
from operant.spec.child_marks import free
from operant.spec.fields import Linear, Schedule, Scheduled


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
