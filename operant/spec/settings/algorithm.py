"""The base classes of every algorithm's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from operant.registry import load
from operant.spec.fields import Closed, fixed, free
from operant.spec.schedules import Linear, Schedule, Scheduled


def algorithm_name(name: str) -> Any:
    """The field that names an algorithm."""
    return fixed("each algorithm keeps what it needs itself", default=name, description="Algorithm.")


class Algorithm(Closed):
    """The base of every algorithm's settings (abstract), with what is known of the algorithm beside its settings.

    `LEARNERS` has for each engine that can run it the learner, as `module:class` or as the class itself; `engine: auto`
    means the first one. `RESUME` is "exact" when a resumed run equals one that was never stopped and "warm" otherwise.
    `USES_MEMORY` tells an off-policy algorithm, and `MEMORY` is the memory that it has if none is named.

    `ACTIONS` are the kinds of action that it can choose, and `NEEDS_BOUNDS` is whether continuous ones must be bounded.
    `TAKES_MASKS` are the engines where it keeps to the legal actions of environments that name them. `TAKES_SEQUENCES`
    is whether it can train a recurrent network, `SHARES_PROCESSES` whether several processes can share a session.
    `RECOMPILES` is why `meta.compile` would compile its network again and again; empty where it would not.
    """

    LEARNERS: ClassVar[Mapping[str, str | type]] = {}
    RESUME: ClassVar[Literal["exact", "warm"]] = "exact"
    USES_MEMORY: ClassVar[bool] = False
    MEMORY: ClassVar[str] = "replay"
    ACTIONS: ClassVar[Literal["any", "discrete", "continuous"]] = "any"
    NEEDS_BOUNDS: ClassVar[bool] = False
    TAKES_MASKS: ClassVar[tuple[str, ...]] = ()
    TAKES_SEQUENCES: ClassVar[bool] = False
    SHARES_PROCESSES: ClassVar[bool] = False
    RECOMPILES: ClassVar[str] = ""

    name: Any  # each algorithm narrows it to its own Literal

    @classmethod
    def engine(cls) -> str:
        """The engine that runs it where the spec names none."""
        return next(iter(cls.LEARNERS))

    @classmethod
    def learner(cls, engine: str) -> Any:
        """The class of its learner in an engine."""
        found = cls.LEARNERS[engine]
        return load(found, "agent.algorithm.name") if isinstance(found, str) else found

    @classmethod
    def resume_kind(cls, spec: Mapping[str, Any]) -> str:
        """`RESUME`, or what becomes of it under a spec, in plain data as a run has kept it."""
        del spec
        return cls.RESUME

    def recompiles(self) -> str:
        """`RECOMPILES`, or what becomes of it under these settings."""
        return self.RECOMPILES

    def inert(self) -> Mapping[str, str]:
        """The dotted paths of settings that this algorithm would never read, each with the reason."""
        return {}


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
