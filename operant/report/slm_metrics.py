"""SLM-Lab's trial metrics, by their documented formulas.

For the metric rows i of a session that carry a training return R_i, at frames f_i and optimiser
steps o_i, with R_rand the score of a random policy and str_i = R_i - R_rand:

    total_reward_ma      mean of R_i over the last 100 rows
    strength             mean of str_i          max_strength  their maximum       final_strength  the last
    sample_efficiency    sum(str_i / f_i) / sum(1 / f_i)
    training_efficiency  sum(str_i / o_i) / sum(1 / o_i)
    stability            1 - |sum_{i<N} min(str_{i+1} - str_i, 0) / sum_{i<N} str_i|
    consistency          1 - 2 sum_i std_j(str_ij) / sum_i mean_j(str_ij)   over sessions j, sample deviation

A trial's value is the mean over its sessions. Where SLM-Lab's own code differs from this text or
its numbers mislead, these rules hold:

- Efficiency divides by sum(1 / t), as documented; SLM-Lab's code divides by sum(str), which loses the scale.
- Rows with t = 0 (no optimiser step yet) have no place in an efficiency and are skipped.
- Consistency of one session is unknown (None), not 1. Sessions are matched by frames, not by row
  number, so that a session whose first episode ended late is not compared with the past of another.
- Stability and consistency are shares of the strength gained. When that sum is not positive (an agent
  that is no better than random) a share has no meaning, so they are None. Stability may still be
  negative: it then says that more was lost on the way than the strength summed up to.
- Without a random score only total_reward_ma is known. Without rows nothing is.
- Sessions without any training return are left out; a value unknown in one of the others is unknown
  for the trial. `frame` is the last frame that every counted session has reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import reduce

import numpy as np

from operant.report.stats import Floats

WINDOW = 100


@dataclass(frozen=True)
class ReturnSeries:
    """One session's rows that carry a training return: frames, optimiser steps and returns, oldest first."""

    frames: Floats
    updates: Floats
    returns: Floats


@dataclass(frozen=True)
class TrialMetrics:
    """SLM-Lab's fields in SLM-Lab's order; None where a value is unknown."""

    frame: int | None
    total_reward_ma: float | None
    strength: float | None
    max_strength: float | None
    final_strength: float | None
    sample_efficiency: float | None
    training_efficiency: float | None
    stability: float | None
    consistency: float | None

    def as_dict(self) -> dict[str, int | float | None]:
        """The fields for `--json`, in order."""
        return asdict(self)

    def line(self) -> str:
        """The one line that SLM-Lab's users grep for."""
        values = (f"{field.name}:{_number(getattr(self, field.name))}" for field in fields(self))
        return "trial_metrics: " + " | ".join(values)


def trial_metrics(sessions: Sequence[ReturnSeries], random_score: float | None) -> TrialMetrics:
    """SLM-Lab's metrics of one trial; `random_score` is R_rand, None when it was not measured."""
    known = [session for session in sessions if len(session.returns)]
    # An unknown baseline is NaN: it makes every value that needs it unknown, and no other.
    baseline = math.nan if random_score is None else random_score
    strengths = [session.returns - baseline for session in known]
    clocked = list(zip(strengths, known, strict=True))
    return TrialMetrics(
        frame=min((int(session.frames[-1]) for session in known), default=None),
        total_reward_ma=_mean([float(session.returns[-WINDOW:].mean()) for session in known]),
        strength=_mean([float(each.mean()) for each in strengths]),
        max_strength=_mean([float(each.max()) for each in strengths]),
        final_strength=_mean([float(each[-1]) for each in strengths]),
        sample_efficiency=_mean([efficiency(each, session.frames) for each, session in clocked]),
        training_efficiency=_mean([efficiency(each, session.updates) for each, session in clocked]),
        stability=_mean([stability(each) for each in strengths]),
        consistency=consistency(known, baseline),
    )


def efficiency(strengths: Floats, clock: Floats) -> float | None:
    """Strength weighted by 1 / clock: early strength counts more. None when the clock never started."""
    started = clock > 0
    if not started.any():
        return None
    weights = 1 / clock[started]
    return float((strengths[started] * weights).sum() / weights.sum())


def stability(strengths: Floats) -> float | None:
    """One minus the share of strength lost in drops between rows; None without two rows or any strength."""
    gained = float(strengths[:-1].sum())
    if gained <= 0:
        return None
    return 1 - abs(float(np.minimum(np.diff(strengths), 0).sum()) / gained)


def consistency(sessions: Sequence[ReturnSeries], random_score: float) -> float | None:
    """One minus twice the spread between sessions as a share of their strength; None for one session."""
    if len(sessions) < 2:
        return None
    common = reduce(np.intersect1d, [session.frames for session in sessions])
    if not len(common):
        return None
    # A frame may carry several rows (a log and an evaluation): the last one counts.
    last = [np.searchsorted(session.frames, common, side="right") - 1 for session in sessions]
    strengths = np.stack([s.returns[rows] for s, rows in zip(sessions, last, strict=True)]) - random_score
    gained = float(strengths.mean(axis=0).sum())
    return 1 - 2 * float(strengths.std(axis=0, ddof=1).sum()) / gained if gained > 0 else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean over sessions; unknown when there is none or when one of them is unknown."""
    present = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(present)) if present and len(present) == len(values) else None


def _number(value: int | float | None) -> str:
    """Six significant digits without trailing zeros; whole frames in full; `n/a` for unknown."""
    if value is None:
        return "n/a"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
