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
    """How an agent did over a few problems: its mean score, the mean raw one, and what is wrong with that, if so.

    `mistaken` of its `rollouts` were scored as its kind must not be: an expert's as less than the ceiling, a lazy
    agent's or a cheater's as more than the baseline; `invalid` have no score.
    """

    agent: str
    kind: Kind
    score: float | None
    hidden: float | None
    seconds: float
    problem: str = ""
    rollouts: int = 0
    mistaken: int = 0
    invalid: int = 0


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

    def errors(self, right: bool) -> tuple[int, int]:
        """How many rollouts that earn all (`right`), or nothing, were mistaken, and how many have a score."""
        kinds = ("expert",) if right else ("lazy", "cheater")
        parts = [part for part in self.parts if part.kind in kinds]
        return sum(part.mistaken for part in parts), sum(part.rollouts - part.invalid for part in parts)

    @property
    def invalid(self) -> int:
        """How many rollouts have no score."""
        return sum(part.invalid for part in self.parts)

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
    slack = task.tolerance * len(played) ** 0.5 + ROUNDING  # a mean varies less than a rollout
    mistaken = sum(score < 1 - slack if agent.kind == "expert" else score > slack for score in scores)
    return Part(
        agent.name,
        agent.kind,
        mean,
        raw,
        seconds,
        _problem(agent.kind, played, task.tolerance),
        len(played),
        mistaken if agent.kind != "novice" else 0,
        len(played) - len(scores),
    )


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
