"""Whether a task of many turns scores rightly, without a model: its scripted agents play it.

An expert must reach the ceiling, a lazy agent the baseline, and a cheater no more than that, as far as chance allows;
what a novice says must be well formed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import get_args

from operant.envs.text.dialogue import DialogueTask, Kind, Played, Scripted, play_script

ROLLOUTS = 3
ROUNDING = 1e-9


@dataclass(frozen=True)
class Part:
    """How an agent did over a few problems: its mean score, the mean raw one, and what is wrong with that, if so."""

    agent: str
    kind: Kind
    score: float | None
    hidden: float | None
    seconds: float
    problem: str = ""


@dataclass
class AgentReport:
    """What was found."""

    task: str
    tolerance: float
    wanted: frozenset[str] = frozenset(get_args(Kind))
    parts: list[Part] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def missing(self) -> list[str]:
        """Kinds of agents that the task should have and does not."""
        return sorted(self.wanted - {part.kind for part in self.parts})

    @property
    def sound(self) -> bool:
        """There is an agent of every kind, and every one did what it should."""
        return not self.missing and not any(part.problem for part in self.parts)


def validate_with_agents(task: DialogueTask, rollouts: int = ROLLOUTS, seed: int = 0) -> AgentReport:
    """Let every scripted agent play the first problems of the evaluation."""
    began = time.monotonic()
    found = AgentReport(task.name, task.tolerance, frozenset(task.agent_kinds))
    found.parts = [_played(task, agent, rollouts, seed) for agent in task.agents().values()]
    found.seconds = time.monotonic() - began
    return found


def _played(task: DialogueTask, agent: Scripted, rollouts: int, seed: int) -> Part:
    began = time.monotonic()
    played = [play_script(task, problem, agent, seed) for problem in task.problems("eval")[:rollouts]]
    verdicts = [one.verdict for one in played if one.verdict]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    hidden = [verdict.parts["hidden"] for verdict in verdicts if "hidden" in verdict.parts]
    seconds = (time.monotonic() - began) / max(len(played), 1)
    mean, raw = fmean(scores) if scores else None, fmean(hidden) if hidden else None
    return Part(agent.name, agent.kind, mean, raw, seconds, _problem(agent.kind, played, task.tolerance))


def _problem(kind: Kind, played: Sequence[Played], tolerance: float) -> str:
    """What is wrong with how an agent did; nothing if it did as its kind should."""
    scores: list[float] = []
    for one in played:
        if one.verdict is None or one.verdict.score is None:
            return f"no score: {one.verdict.note if one.verdict else 'no verdict'}"
        if one.verdict.parts.get("grader_failed"):
            return one.verdict.note
        scores.append(one.verdict.score)
    if not scores:
        return "no problem to play"
    mean, slack = fmean(scores), tolerance + ROUNDING
    if kind == "expert" and mean < 1 - slack:
        return f"an expert must reach 1, and reached {mean:.3f}"
    if kind == "lazy" and abs(mean) > slack:
        return f"a lazy agent must stay at 0, and reached {mean:.3f}"
    if kind == "cheater" and mean > slack:
        return f"a cheater must not reach more than 0, and reached {mean:.3f}"
    faults = [exchange.response.fault for one in played for exchange in one.exchanges if exchange.response.fault]
    return f"what a novice says must be well formed: {faults[0]}" if kind == "novice" and faults else ""
