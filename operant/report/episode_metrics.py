"""What an environment reports of its episodes beside their score, such as the stage reached or a win."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from operant.report.read import SessionRecord
from operant.report.stats import Estimate, episode_interval, mean_interval

SCORE_COLUMNS = ("score", "low", "high", "episodes")


def parts_of(episodes: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    """The values of each part, over the episodes that have it."""
    found: dict[str, list[float]] = {}
    for parts in episodes:
        for name, value in parts.items():
            found.setdefault(name, []).append(float(value))
    return found


def over_episodes(episodes: Iterable[Mapping[str, float]]) -> dict[str, Estimate]:
    """The mean of each part over the episodes of one policy, with its interval."""
    return {name: episode_interval(values) for name, values in parts_of(episodes).items()}


def final_parts(sessions: Sequence[SessionRecord]) -> dict[str, Estimate]:
    """The mean of each part in the final evaluations: over seeds, or over the episodes of the only one."""
    reporting = [session for session in sessions if _means(session)]
    if len(reporting) == 1:
        return over_episodes(row.get("parts", {}) for row in reporting[0].episodes("final"))
    means = parts_of(_means(session) for session in reporting)
    return {name: mean_interval(values) for name, values in means.items()}


def line(parts: Mapping[str, Estimate]) -> str:
    """`stage 5.312 [5.201, 5.423], won 0.0210 [0.0138, 0.0319]`."""
    return ", ".join(f"{name} {estimate.text()}" for name, estimate in parts.items())


def _means(session: SessionRecord) -> dict[str, float]:
    """The parts in the last row of a final evaluation."""
    row: dict[str, Any] = next((row for row in reversed(session.rows) if "final/score" in row), {})
    found = {name.removeprefix("final/"): value for name, value in row.items() if name.startswith("final/")}
    return {name: value for name, value in found.items() if name not in SCORE_COLUMNS and value is not None}
