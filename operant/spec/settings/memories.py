"""Settings of replay memories (off-policy algorithms only)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from operant.registry import load
from operant.spec.fields import Closed, fixed, free
from operant.spec.registry import PartRegistry, in_engines
from operant.spec.schedules import Schedule, Scheduled


class Memory(Closed):
    """The base of every memory's settings (abstract).

    `BUFFERS` has for each engine the class of the replay buffer, as `module:class` or as the class itself.
    """

    BUFFERS: ClassVar[Mapping[str, str | type]] = in_engines(torch="buffers.replay:Replay")

    name: Any  # each memory narrows it to its own Literal
    batch_size: int = free(default=64, ge=1, le=1_000_000, description="Transitions in one sampled batch.")
    max_size: int = fixed(
        "the replay is kept in a ring of this size",
        default=50_000,
        ge=1,
        le=100_000_000,
        description="Transitions kept; the oldest leave first.",
    )
    combined: bool = free(
        default=False, description="Every batch has the newest transition in it (Zhang and Sutton, 2017)."
    )

    @classmethod
    def buffer(cls, engine: str) -> Any:
        """The class of its replay buffer in an engine."""
        found = cls.BUFFERS[engine]
        return load(found, "agent.memory.name") if isinstance(found, str) else found


class ReplaySpec(Memory):
    """A ring of past transitions, sampled uniformly."""

    name: Literal["replay"] = fixed(
        "what a run remembers is kept as this memory", default="replay", description="Kind of memory."
    )


class PrioritisedReplaySpec(Memory):
    """A ring of past transitions, sampled by temporal-difference error (Schaul et al., 2016)."""

    name: Literal["prioritised"] = fixed(
        "what a run remembers is kept as this memory", default="prioritised", description="Kind of memory."
    )
    alpha: float = fixed(
        "kept priorities are errors to this power",
        default=0.6,
        ge=0,
        le=1,
        description="How strongly errors bend the sampling; 0 is uniform.",
    )
    beta: Annotated[Schedule, Scheduled(ge=0, le=1)] = free(
        default=0.4, description="Strength of the importance-weight correction; 1 corrects fully."
    )
    epsilon: float = fixed(
        "kept priorities have it in them",
        default=1e-6,
        gt=0,
        lt=1,
        description="Added to every error so that none is never sampled.",
    )


MEMORIES = PartRegistry(
    "agent.memory.name",
    Memory,
    {
        "replay": ReplaySpec,
        "prioritised": PrioritisedReplaySpec,
    },
)
