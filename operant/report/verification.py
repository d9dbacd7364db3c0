"""A run held against its rerun: the same bytes, inside the interval, or different, and then by what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from operant.report.differences import CAUSES, Difference, Rank
from operant.report.formatting import score as score_text
from operant.report.run_diff import difference_lines
from operant.report.stats import episode_interval, mean_interval
from operant.run.checkpoint import list_checkpoints
from operant.run.episode import counted_scores
from operant.run.layout import EPISODES_FILE, METRICS_FILE
from operant.run.metrics import read_rows
from operant.run.prompt_balance import PromptBalance, check_prompts
from operant.run.records import Rows, checkpoint_difference, rows_difference, untimed_rows
from operant.run.run import Run

Verdict = Literal["bitwise equal", "inside the interval", "different"]
ROUNDING = 1e-3  # of a loss after some updates, whose terms nearly cancel
LOGS = (METRICS_FILE, EPISODES_FILE)
MEASURES = ("final/score", "eval/score", "train/return")


@dataclass(frozen=True)
class SessionCheck:
    """One session and its rerun up to `frames`: how much was compared, and the first difference, if there is one.

    `checkpoints` are the frames at which the weights of both were there to be compared. `rounding` says that the first
    numbers that differ do so by no more than another order of additions would make them. `prompts` is the balance of
    the prompt journal, where the run has one.
    """

    session: int
    seed: int
    frames: int
    rows: int
    episodes: int
    checkpoints: tuple[int, ...]
    difference: str | None
    rounding: bool = False
    prompts: PromptBalance | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        prompts = None if self.prompts is None else self.prompts.as_dict()
        return {**asdict(replace(self, prompts=None)), "prompts": prompts}


@dataclass(frozen=True)
class ScoreCheck:
    """The mean of the last measure that run and rerun both have, and the interval of the run's.

    The interval is over seeds, or over the episodes of the only one; None where neither is known.
    """

    metric: str
    frames: int
    run: float
    rerun: float
    low: float | None
    high: float | None
    over: Literal["seeds", "episodes"]

    @property
    def inside(self) -> bool:
        """Whether the rerun lies inside the run's interval."""
        return self.low is not None and self.high is not None and self.low <= self.rerun <= self.high


@dataclass(frozen=True)
class Verification:
    """What a rerun showed. `repeatable` is known where no ingredient differed and the rerun was made twice."""

    path: str
    fraction: float
    sessions: tuple[SessionCheck, ...]
    score: ScoreCheck | None
    differences: tuple[Difference, ...]
    repeatable: bool | None = None

    @property
    def equal(self) -> bool:
        """Whether every byte that was compared is the same."""
        return all(each.difference is None for each in self.sessions)

    @property
    def unbalanced(self) -> tuple[str, ...]:
        """What does not balance in the prompt journals: prompts lost, repeated or trained on twice."""
        return tuple(fault for each in self.sessions if each.prompts for fault in each.prompts.faults)

    @property
    def verdict(self) -> Verdict:
        """One of three words; a run whose own files were changed is different whatever its numbers are.

        So is one whose prompts do not balance.
        """
        if self.unbalanced:
            return "different"
        if self.equal:
            return "bitwise equal"
        explained = bool(self.causes) or self.repeatable is False
        return "inside the interval" if explained and self.score is not None and self.score.inside else "different"

    @property
    def verified(self) -> bool:
        """Whether the rerun bears the run out."""
        return self.verdict != "different"

    @property
    def causes(self) -> tuple[Difference, ...]:
        """The ingredients that differ and can change numbers, the likeliest first; none where the bytes are equal.

        Where the first numbers are apart by rounding only, arithmetic comes before code and packages.
        """
        if self.equal:
            return ()
        found = [each for each in self.differences if each.rank in CAUSES]
        rounding = next(each.rounding for each in self.sessions if each.difference)
        return tuple(sorted(found, key=lambda each: not (rounding and each.rank == Rank.ARITHMETIC)))

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {
            "run": self.path,
            "fraction": self.fraction,
            "verdict": self.verdict,
            "sessions": [each.as_dict() for each in self.sessions],
            "score": None if self.score is None else {**asdict(self.score), "inside": self.score.inside},
            "causes": [each.as_dict() for each in self.causes],
            "differences": [each.as_dict() for each in self.differences],
            "repeatable": self.repeatable,
        }

    def __str__(self) -> str:
        return "\n".join(render(self))


def check_session(run: Run, rerun: Run) -> SessionCheck:
    """Compare a session with its rerun as far as both got, in rows, episodes and weights."""
    frames = min(reached(run), reached(rerun))
    logs = [[_until(untimed_rows(each.path / file), frames) for each in (run, rerun)] for file in LOGS]
    found = next((d for file, rows in zip(LOGS, logs, strict=True) if (d := rows_difference(file, *rows))), None)
    saved = [{each.at.frames: each for each in list_checkpoints(one.checkpoints)} for one in (run, rerun)]
    common = sorted(saved[0].keys() & saved[1].keys())
    for at in common:
        weights = found is None and checkpoint_difference(saved[0][at], saved[1][at])
        found = f"checkpoint at frame {at:,}: {weights}" if weights else found
    counts = len(logs[0][0]), len(logs[1][0])
    rounding = _only_rounding(*logs[0])
    return SessionCheck(run.index, run.seed, frames, *counts, tuple(common), found, rounding, check_prompts(run))


def reached(run: Run) -> int:
    """Frames of the newest row or checkpoint."""
    rows = [int(row.get("frames") or 0) for row in read_rows(run.path / METRICS_FILE)]
    return max([0, *rows, *(each.at.frames for each in list_checkpoints(run.checkpoints))])


def check_score(runs: Sequence[Run], reruns: Sequence[Run]) -> ScoreCheck | None:
    """Hold the last measure that all have at the same frames against the run's interval; None without one."""
    logs = [[read_rows(each.path / METRICS_FILE) for each in side] for side in (runs, reruns)]
    for metric in MEASURES:
        rows = [[_by_frames(log, metric) for log in side] for side in logs]
        common = set.intersection(*(set(each) for side in rows for each in side))
        if common:
            at = max(common)
            ours, again = ([float(each[at]) for each in side] for side in rows)
            return _held_against(metric, at, ours, again, runs[0])
    return None


def render(found: Verification) -> list[str]:
    """The verdict, what was compared, and the likeliest causes of a difference."""
    lines = [f"{found.verdict}: {_share(found.fraction)} of {found.path} was run again"]
    lines += [f"  {_session_line(each)}" for each in found.sessions]
    lines += [f"  prompts: {each.prompts}" for each in found.sessions if each.prompts is not None]
    if not any(each.checkpoints for each in found.sessions):
        lines.append(
            "  weights were not compared: no checkpoint of the run lies in this part; --fraction 1 reaches one"
        )
    if found.equal:
        return lines
    if found.score is not None:
        lines.append(f"  {_score_line(found.score)}")
    return [*lines, "", *_cause_lines(found)]


def _cause_lines(found: Verification) -> list[str]:
    causes = found.causes
    if causes:
        first = causes[0]
        head = f"most likely cause: {first.kind} {first.name}" if first.kind != first.name else f"cause: {first.kind}"
        return [f"{head}, {first.a} in the run, {first.b} now", "what differs:", *difference_lines(causes)]
    if found.repeatable is False:
        return ["cause: nothing that was recorded differs, and two reruns differ too: it is not repeatable here"]
    return ["cause: nothing that was recorded differs, and reruns agree: the run's files were changed after it ran"]


def _session_line(check: SessionCheck) -> str:
    rows = "1 metric row" if check.rows == 1 else f"{check.rows:,} metric rows"
    compared = [rows, "1 episode" if check.episodes == 1 else f"{check.episodes:,} episodes"]
    if check.checkpoints:
        compared.append(f"weights at frame {', '.join(f'{at:,}' for at in check.checkpoints)}")
    what = "equal" if check.difference is None else f"differs first in {check.difference}"
    return f"session {check.session} (seed {check.seed}) to frame {check.frames:,}: {', '.join(compared)}: {what}"


def _score_line(found: ScoreCheck) -> str:
    if found.low is None or found.high is None:
        where = "which has no interval"
    else:
        place = "inside" if found.inside else "outside"
        where = f"{place} the run's [{score_text(found.low)}, {score_text(found.high)}] over {found.over}"
    return f"{found.metric} at frame {found.frames:,}: {score_text(found.rerun)}, was {score_text(found.run)}; {where}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def _until(rows: Rows, frames: int) -> Rows:
    return [row for row in rows if int(row.get("frames") or 0) <= frames]


def _only_rounding(run: Rows, rerun: Rows) -> bool:
    """Whether the numbers of the first metric rows that differ are almost equal; False where none differ."""
    for mine, theirs in zip(run, rerun, strict=False):
        if mine != theirs:
            pairs = [(mine[key], theirs.get(key)) for key in mine if isinstance(mine[key], float)]
            return mine.keys() == theirs.keys() and all(
                isinstance(b, float) and math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING) for a, b in pairs
            )
    return False


def _by_frames(rows: Rows, metric: str) -> dict[int, float]:
    return {int(row["frames"]): row[metric] for row in rows if isinstance(row.get(metric), int | float)}


def _held_against(metric: str, at: int, ours: Sequence[float], again: Sequence[float], first: Run) -> ScoreCheck:
    estimate, over = mean_interval(ours), "seeds"
    played = _episode_scores(first, metric.partition("/")[0], at)
    if len(ours) == 1 and len(played) > 1:
        estimate, over = episode_interval(played), "episodes"
    rerun = sum(again) / len(again)
    return ScoreCheck(metric, at, sum(ours) / len(ours), rerun, estimate.low, estimate.high, over)


def _episode_scores(run: Run, split: str, at: int) -> list[float]:
    """The scores of the evaluation at some frame; of training there are none that belong together."""
    if split == "train":
        return []
    rows = (row for row in read_rows(run.path / EPISODES_FILE) if row.get("split") == split and row.get("frames") == at)
    return counted_scores(row.get("score") for row in rows)
