"""Normalized scores: 0 is random play, 1 a reference, so that scores of different problems can be averaged.

The score of random play is the one that the run itself measured, where it did. The references are in
`reference_scores`, with where each comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operant.report.reference_scores import ATARI, ATARI_SOURCE, CONTROL, RANDOM_SOURCE, REFERENCE_SOURCE
from operant.report.stats import Floats


@dataclass(frozen=True)
class Reference:
    """The scores that become 0 and 1, and where they come from."""

    random: float
    reference: float
    source: str


def reference_of(env: str, measured_random: float | None = None) -> Reference | None:
    """The reference of an environment by its name; None where none is known."""
    if env in CONTROL:
        random, reference, by = CONTROL[env]
        source = f"{REFERENCE_SOURCE}, {by}; {RANDOM_SOURCE}"
    elif env.startswith("ALE/") and env.removeprefix("ALE/").rpartition("-v")[0] in ATARI:
        random, reference = ATARI[env.removeprefix("ALE/").rpartition("-v")[0]]
        source = ATARI_SOURCE
    else:
        return None
    return Reference(random if measured_random is None else measured_random, reference, source)


def normalized(scores: Sequence[float], by: Reference) -> Floats:
    """0 for random play, 1 for the reference, linear between and beyond."""
    return (np.asarray(scores, dtype=np.float64) - by.random) / (by.reference - by.random)
