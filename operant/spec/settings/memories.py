"""Settings of replay memories (off-policy algorithms only)."""

from __future__ import annotations

from typing import Annotated, Literal

from operant.spec.fields import Closed, Schedule, Scheduled, fixed, free


class ReplaySpec(Closed):
    """A ring of past transitions, sampled uniformly."""

    name: Literal["replay"] = fixed(
        "what a run remembers is kept as this memory", default="replay", description="Kind of memory."
    )
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


class PrioritisedReplaySpec(Closed):
    """A ring of past transitions, sampled by temporal-difference error (Schaul et al., 2016)."""

    name: Literal["prioritised"] = fixed(
        "what a run remembers is kept as this memory", default="prioritised", description="Kind of memory."
    )
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


MEMORIES: dict[str, type[ReplaySpec] | type[PrioritisedReplaySpec]] = {
    "replay": ReplaySpec,
    "prioritised": PrioritisedReplaySpec,
}
