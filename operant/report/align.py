"""Curves of several seeds on one axis.

Each seed keeps its own range: outside it the value is unknown, not extended. So a seed that failed
early does not pull the mean of the others, and a mean over "all seeds" is drawn only where all are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from operant.report.stats import Floats

MOST_POINTS = 512


@dataclass(frozen=True)
class Curve:
    """One seed's metric `y` over a strictly increasing `x`; both may be empty."""

    x: Floats
    y: Floats


@dataclass(frozen=True)
class Aligned:
    """Curves read at common positions: `values[seed, position]`, NaN where a seed has no data."""

    x: Floats
    values: Floats

    @property
    def shared(self) -> NDArray[np.bool_]:
        """Positions at which every seed has a value."""
        return np.asarray(np.isfinite(self.values).all(axis=0))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Positions at which at least one seed has a value."""
        return np.asarray(np.isfinite(self.values).any(axis=0))


def increasing(x: Floats, y: Floats) -> Curve:
    """A curve from rows in order of writing: unknown values dropped, the last row of an equal `x` kept."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    positions, first_from_end = np.unique(x[::-1], return_index=True)
    return Curve(positions, y[::-1][first_from_end])


def align(curves: Sequence[Curve], at: Floats | None = None) -> Aligned:
    """The non-empty curves at the positions `at`, by default at every position any of them has.

    More than `MOST_POINTS` of them are thinned to an even grid; between a seed's own points the
    value is interpolated linearly.
    """
    curves = [curve for curve in curves if len(curve.x)]
    if at is None:
        at = _positions(curves)
    values = [np.interp(at, curve.x, curve.y, left=np.nan, right=np.nan) for curve in curves]
    return Aligned(at, np.array(values, dtype=np.float64).reshape(len(curves), len(at)))


def _positions(curves: Sequence[Curve]) -> Floats:
    """Every x of every curve, or an even grid over the same range when those are too many."""
    every = np.unique(np.concatenate([curve.x for curve in curves])) if curves else np.empty(0)
    return every if len(every) <= MOST_POINTS else np.linspace(every[0], every[-1], MOST_POINTS)
