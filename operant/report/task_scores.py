"""Evaluations on tasks: the score of each with its interval over items, pass@k, and what went wrong."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from operant.report.formatting import columns, compact
from operant.report.stats import Estimate, episode_interval
from operant.run.episode import Episode, counted_scores

RIGHT = 1.0


@dataclass(frozen=True)
class TaskScore:
    """How a policy did in one task.

    `score` is the mean over items of the mean over their samples; `passes` maps k to pass@k, for every k that the
    samples allow. Answers without a score are counted in `errors` and count as failed ones in every mean; where not
    one answer of the task has a score, there is no mean.
    """

    task: str
    items: int
    samples: int
    score: Estimate | None
    passes: dict[int, Estimate]
    unparsed: int
    truncated: int
    errors: int
    tokens: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        passes = {f"pass@{k}": estimate.as_dict() for k, estimate in self.passes.items()}
        return {**vars(self), "score": self.score.as_dict() if self.score else None, "passes": passes}


def pass_at_k(samples: int, right: int, k: int) -> float:
    """The chance that at least one of `k` answers drawn from `samples`, of which `right` are right, is right.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) of Chen et al., "Evaluating large language models trained on
    code" (2021), equation 1; exact, for Python's binomials are.
    """
    if not 1 <= k <= samples or not 0 <= right <= samples:
        raise ValueError(f"pass@{k} of {right} right answers among {samples} is not defined")
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def task_score(task: str, episodes: Sequence[Episode], seconds: float) -> TaskScore:
    """What the episodes of one task add up to; several episodes of one item are its samples."""
    items: dict[str | None, list[float]] = defaultdict(list)
    counted = counted_scores(episode.score for episode in episodes)
    for place, episode in enumerate(episodes):
        scores = items[episode.item]
        if counted:
            scores.append(counted[place])
    scored = [scores for scores in items.values() if scores]
    samples = max(map(len, scored), default=0)
    return TaskScore(
        task=task,
        items=len(items),
        samples=samples,
        score=episode_interval([sum(scores) / len(scores) for scores in scored]) if scored else None,
        passes=_passes(scored, samples),
        unparsed=sum(bool(episode.parts.get("unparsed")) for episode in episodes),
        truncated=sum(episode.ended == "truncated" for episode in episodes),
        errors=sum(episode.ended == "error" for episode in episodes),
        tokens=sum(episode.length for episode in episodes),
        seconds=seconds,
    )


def _passes(scored: Sequence[Sequence[float]], samples: int) -> dict[int, Estimate]:
    """pass@k over the items that have k scored samples; none where there is but one sample."""
    found: dict[int, Estimate] = {}
    for k in range(1, samples + 1 if samples > 1 else 1):
        counts = [(len(scores), sum(score >= RIGHT for score in scores)) for scores in scored if len(scores) >= k]
        found[k] = episode_interval([pass_at_k(n, right, k) for n, right in counts])
    return found


def score_table(scores: Sequence[TaskScore]) -> list[str]:
    """One line for each task; of pass@k the powers of two and the last."""
    ks = sorted({k for each in scores for k in each.passes if k == each.samples or k & (k - 1) == 0})
    head = ["task", "items", "score", *(f"pass@{k}" for k in ks), "unparsed", "truncated", "errors", "tokens/s"]
    rows = [
        [
            each.task,
            f"{each.items:,}",
            _shown(each.score),
            *(_shown(each.passes.get(k)) for k in ks),
            f"{each.unparsed:,}",
            f"{each.truncated:,}",
            f"{each.errors:,}",
            compact(each.tokens / each.seconds) if each.seconds > 0 else "-",
        ]
        for each in scores
    ]
    lines = columns([head, *rows], right={1, *range(3 + len(ks), len(head))})
    unscored = sum(each.errors for each in scores if each.score)
    return [*lines, *([f"{unscored:,} answers without a score: they count as 0"] if unscored else [])]


def _shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.point:.3f} (one item)"
    return estimate.text(3)
