"""Whether two trials may be compared: do they answer the same problem, and are they two trials at all?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operant.errors import UsageError
from operant.report.read import SessionRecord, TrialRecord
from operant.report.summary import FINAL
from operant.run.layout import METRICS_FILE, shown
from operant.run.progress import without_timing

# How a problem is stepped and what a learner sees of it; scores are returns of the problem itself.
NOT_THE_PROBLEM = {
    "num_envs", "max_frame", "vectorization", "normalize_obs", "normalize_reward", "clip_obs", "clip_reward",
    "reward_scale",
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What a score is a score of: the environment, and how policies are evaluated in it. Equal ones are comparable."""

    env: str
    facts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, trial: TrialRecord, score_from: str | None) -> Problem:
        """The problem of a trial whose score is of that evaluation."""
        env, meta = trial.spec.get("env", {}), trial.spec.get("meta", {})
        facts = {f"env.{key}": value for key, value in env.items() if key not in NOT_THE_PROBLEM}
        episodes = "final_episodes" if score_from == FINAL else "eval_episodes"
        facts |= {
            "scored by": score_from,
            f"meta.{episodes}": meta.get(episodes),
            "meta.eval_seed": meta.get("eval_seed"),
        }
        # Settings that a newer version added are absent in older runs, and null where they do not matter.
        known = {key: value for key, value in facts.items() if value not in (None, {}, [])}
        return cls(str(env.get("name")), tuple(sorted((key, json.dumps(known[key], sort_keys=True)) for key in known)))

    def difference(self, other: Problem) -> str:
        """The settings in which two problems differ, the environment first: `env.name "A" and "B"`."""
        own, its = dict(self.facts), dict(other.facts)
        keys = sorted({*own, *its}, key=lambda key: (key != "env.name", key))
        differing = [key for key in keys if own.get(key) != its.get(key)]
        shown = differing[:1] if differing[:1] == ["env.name"] else differing
        return ", ".join(f"{key} {own.get(key, 'unset')} and {its.get(key, 'unset')}" for key in shown)


def sameness(first: TrialRecord, second: TrialRecord) -> str | None:
    """Why two trials are no two pieces of evidence, in words; None where all their sessions are distinct."""
    pairs = [(a, b, _same(a, b)) for a in first.sessions for b in second.sessions if a.seed == b.seed]
    found = [words for *_, words in pairs if words is not None]
    if not found:
        return None
    if len(found) < max(len(first.sessions), len(second.sessions)):
        return f"they share {len(found)} of their sessions"
    return "the same run" if all(words == "run" for words in found) else "one repeats the other: same seeds, same rows"


def group_by(trials: Sequence[TrialRecord], path: str) -> list[tuple[str, list[TrialRecord]]]:
    """Trials by the value of a setting, named `gamma=0.99`, in the order given; a run named twice counts once."""
    groups: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        value = _setting(trial, path)
        group = groups.setdefault(value if isinstance(value, str) else json.dumps(value), [])
        if all(sameness(trial, other) is None for other in group):
            group.append(trial)
    parts = path.split(".")
    # `agent.algorithm.name` is told by `algorithm=ppo`.
    word = parts[-2] if parts[-1] == "name" and len(parts) > 1 else parts[-1]
    return [(f"{word}={value}", group) for value, group in groups.items()]


def _setting(trial: TrialRecord, path: str) -> Any:
    """The value at a dotted path of the spec; `UsageError` where there is no such setting."""
    value: Any = trial.spec
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = (
                f"one of: {', '.join(value)}" if isinstance(value, Mapping) else "a path such as agent.algorithm.name"
            )
            raise UsageError(f"this run has no setting {path!r}", place=shown(trial.path), remedy=known)
        value = value[part]
    return value


def _same(a: SessionRecord, b: SessionRecord) -> str | None:
    """`run` of one session under two names or a copy of it, `rows` of one that was trained twice to the same end."""
    if a.path.resolve() == b.path.resolve():
        return "run"
    if not a.rows or len(a.rows) != len(b.rows) or a.frames != b.frames:
        return None
    if _metrics(a) == _metrics(b):
        return "run"
    return "rows" if [without_timing(row) for row in a.rows] == [without_timing(row) for row in b.rows] else None


def _metrics(session: SessionRecord) -> bytes:
    return (session.path / METRICS_FILE).read_bytes()
