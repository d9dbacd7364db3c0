"""Episodes that ended, as the host records them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from operant.engines.jax.learner import RecordedSteps


class EpisodeResults(NamedTuple):
    """Totals of episodes [E]."""

    score: Array
    length: Array
    terminated: Array
    facts: dict[str, Array]


@dataclass(frozen=True)
class FinishedEpisode:
    """An episode that ended; `parts` are the facts that its environment gave of it."""

    seed: int | None
    score: float
    length: int
    terminated: bool
    parts: dict[str, float] = field(default_factory=dict)


def episode_at(found: EpisodeResults, at: Any, seed: int | None = None) -> FinishedEpisode:
    """The episode at an index of results on the host."""
    parts = {name: float(value[at]) for name, value in found.facts.items()}
    return FinishedEpisode(seed, float(found.score[at]), int(found.length[at]), bool(found.terminated[at]), parts)


def finished_episodes(recorded: RecordedSteps) -> list[FinishedEpisode]:
    """The episodes that ended in the recorded environments [U, T, E] during U updates, in the order they ended."""
    rows: RecordedSteps = jax.tree.map(lambda part: part.reshape(-1, part.shape[-1]), recorded)
    found = EpisodeResults(rows.score, rows.length, rows.terminated, rows.facts)
    return [episode_at(found, at) for at in zip(*np.nonzero(rows.over), strict=True)]


def mean_parts(split: str, ended: Sequence[FinishedEpisode]) -> dict[str, float]:
    """The mean of each part over episodes, as columns of a row."""
    return {f"{split}/{name}": float(np.mean([over.parts[name] for over in ended])) for name in ended[0].parts}
