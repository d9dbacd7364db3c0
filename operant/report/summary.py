"""What a trial came to: the score with its interval, each seed, SLM-Lab's metrics, where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from operant.report.cost import Cost, cost_of
from operant.report.episode_metrics import final_parts
from operant.report.episode_metrics import line as parts_line
from operant.report.formatting import columns, duration, score
from operant.report.read import TRAIN_RETURN, Evaluation, SessionRecord, TrialRecord, read_trial
from operant.report.slm_metrics import TrialMetrics, trial_metrics
from operant.report.stats import Estimate, mean_interval
from operant.run.layout import shown

FINAL, LAST = "final evaluation", "last evaluation"
# Of several sessions in different states, the one that says most about the whole.
STATE_ORDER = ("running", "failed", "stopped", "new", "done")

METRICS_EXPLAINED = (
    "  (SLM-Lab's measures of returns in training: strength is above random play, the others say how early and how"
    " steadily it came; docs/explain/statistics.md)"
)


@dataclass(frozen=True)
class SessionRow:
    """One seed in the summary; None where it is not known."""

    session: int
    seed: int
    state: str
    frames: int
    seconds: float
    score: float | None
    low: float | None
    high: float | None
    best_eval: float | None
    train_return: float | None
    attempts: int
    error: str | None


@dataclass(frozen=True)
class TrialSummary:
    """The whole of a trial. `score` is None when no seed was evaluated yet; `notes` are caveats.

    `score_from` says which evaluation was scored; `parts` are means of what the environment reported of the
    episodes of the final one; `frames` and `seconds` are those of the seed that
    has most; `resume` is "exact", "warm" or None when it is not known; `cost` is None where no session kept an account.
    """

    name: str
    path: Path
    env: str | None
    algorithm: str | None
    state: str
    score: Estimate | None
    score_from: str | None
    episodes: int | None
    parts: dict[str, Estimate]
    random_score: float | None
    start_score: float | None
    sessions: tuple[SessionRow, ...]
    metrics: TrialMetrics
    resume: str | None
    frames: int
    seconds: float
    commit: str | None
    dirty: bool | None
    notes: tuple[str, ...]
    cost: Cost | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {
            **asdict(self),
            "path": str(self.path),
            "score": None if self.score is None else self.score.as_dict(),
            "sessions": [asdict(session) for session in self.sessions],
            "metrics": self.metrics.as_dict(),
            "notes": list(self.notes),
        }


def summarise(path: Path, resume: str | None = None) -> TrialSummary:
    """Summarise the trial in that directory; `resume` is the kind its algorithm declares."""
    return summarise_record(read_trial(path), resume)


def summarise_record(trial: TrialRecord, resume: str | None = None) -> TrialSummary:
    """Summarise a trial that was read already."""
    evaluations, score_from = _scored(trial.sessions)
    scores = [evaluation.score for evaluation in evaluations if evaluation is not None]
    counts = [e.episodes for e in evaluations if e is not None and e.episodes is not None]
    repositories = trial.sessions[0].provenance.get("git") or [{}]
    return TrialSummary(
        name=trial.name,
        path=trial.path,
        env=trial.spec.get("env", {}).get("name"),
        algorithm=trial.spec.get("agent", {}).get("algorithm", {}).get("name"),
        state=overall_state([session.state for session in trial.sessions]),
        score=mean_interval(scores) if scores else None,
        score_from=score_from if scores else None,
        episodes=min(counts, default=None),
        parts=final_parts(trial.sessions),
        random_score=trial.anchors.get("random"),
        start_score=trial.anchors.get("start"),
        sessions=tuple(_row(s, e) for s, e in zip(trial.sessions, evaluations, strict=True)),
        metrics=trial_metrics([session.returns() for session in trial.sessions], zero_of(trial.anchors)),
        resume=resume,
        frames=max(session.frames for session in trial.sessions),
        seconds=max(session.seconds for session in trial.sessions),
        commit=repositories[0].get("sha"),
        dirty=any(each["dirty"] for each in repositories) if "dirty" in repositories[0] else None,
        notes=_notes(trial, evaluations, score_from),
        cost=cost_of(trial.path),
    )


def zero_of(anchors: Mapping[str, float]) -> float | None:
    """What strength is measured from: random play, or where there is no such thing the policy before it trained."""
    return anchors.get("random", anchors.get("start"))


def overall_state(states: Sequence[str]) -> str:
    """One word for several sessions: running if any runs, else failed, stopped or new, done only if all are."""
    return next((state for state in STATE_ORDER if state in states), "new")


def render(summary: TrialSummary, metrics: bool = False) -> str:
    """The summary as plain text for a terminal or a log; with SLM-Lab's `metrics` where they are wanted."""
    lines = [_title(summary), _score_line(summary)]
    if summary.parts:
        lines.append(f"parts {parts_line(summary.parts)}")
    if summary.random_score is not None:
        lines.append(f"random policy {score(summary.random_score)}")
    if summary.start_score is not None:
        lines.append(f"before training {score(summary.start_score)}")
    lines += [f"note: {note}" for note in summary.notes]
    lines += ["", *_session_lines(summary.sessions), "", _origin_line(summary)]
    lines += [] if summary.cost is None else [f"cost {summary.cost.text()}"]
    lines += [summary.metrics.line(), METRICS_EXPLAINED] if metrics else []
    return "\n".join(lines)


def _scored(sessions: Sequence[SessionRecord]) -> tuple[list[Evaluation | None], str]:
    """The evaluation of each session that counts: the final one if any session has it, else the last one."""
    finals = [session.final() for session in sessions]
    if any(final is not None for final in finals):
        return finals, FINAL
    return [next(reversed(session.evaluations()), None) for session in sessions], LAST


def _notes(trial: TrialRecord, evaluations: Sequence[Evaluation | None], score_from: str) -> tuple[str, ...]:
    """What a reader of the score must know and would not guess."""
    pairs = list(zip(trial.sessions, evaluations, strict=True))
    present = [evaluation for evaluation in evaluations if evaluation is not None]
    missing = [f"session {session.index} ({session.state})" for session, evaluation in pairs if evaluation is None]
    notes = []
    if present and score_from == LAST:
        first, last = min(e.frames for e in present), max(e.frames for e in present)
        when = f"{last:,}" if first == last else f"{first:,} to {last:,}"
        notes.append(f"no final evaluation yet: the score is that of the last evaluation, at {when} frames")
    if present and missing:
        notes.append(f"left out of the score, not evaluated: {', '.join(missing)}")
    expected = trial.spec.get("meta", {}).get("max_session")
    if isinstance(expected, int) and trial.path.name.startswith("trial_") and len(trial.sessions) < expected:
        notes.append(f"{len(trial.sessions)} of {expected} sessions exist so far")
    return tuple(notes)


def _row(session: SessionRecord, evaluation: Evaluation | None) -> SessionRow:
    returns = session.curve(TRAIN_RETURN).y
    return SessionRow(
        session=session.index,
        seed=session.seed,
        state=session.state,
        frames=session.frames,
        seconds=session.seconds,
        score=evaluation.score if evaluation else None,
        low=evaluation.low if evaluation else None,
        high=evaluation.high if evaluation else None,
        best_eval=max((e.score for e in session.evaluations()), default=None),
        train_return=float(returns[-1]) if len(returns) else None,
        attempts=session.attempts,
        error=session.error,
    )


def _title(summary: TrialSummary) -> str:
    what = " on ".join(part for part in (summary.algorithm, summary.env) if part)
    return "  ".join(part for part in (summary.name, what, summary.state, shown(summary.path)) if part)


def _score_line(summary: TrialSummary) -> str:
    if summary.score is None:
        return "score: none yet, no seed was evaluated"
    seeds = "1 seed" if summary.score.n == 1 else f"{summary.score.n} seeds"
    each = "" if summary.episodes is None else f", {summary.episodes:,} episodes each"
    return f"score {summary.score.text()} mean greedy return over {seeds}{each}"


def session_table(sessions: Sequence[SessionRow]) -> list[list[str]]:
    """The seeds as a table of texts, its first row the names of the columns."""
    head = ["session", "seed", "state", "frames", "time", "score", "over episodes", "best eval", "last return"]
    rows = [
        [
            str(row.session),
            str(row.seed),
            row.state,
            f"{row.frames:,}",
            duration(row.seconds),
            score(row.score),
            "" if row.low is None or row.high is None else f"[{score(row.low)}, {score(row.high)}]",
            score(row.best_eval),
            score(row.train_return),
        ]
        for row in sessions
    ]
    return [head, *rows]


def _session_lines(sessions: Sequence[SessionRow]) -> list[str]:
    failures = [
        f"session {row.session} failed: {row.error.strip()}"
        for row in sessions
        if row.error is not None and row.error.strip()
    ]
    return [*columns(session_table(sessions), right={0, 1, 3, 4, 5, 6, 7, 8}), *failures]


def _origin_line(summary: TrialSummary) -> str:
    parts = [f"{summary.frames:,} frames per seed in {duration(summary.seconds)}"]
    if summary.resume is not None:
        parts.append(f"{summary.resume} resume")
    if summary.commit is not None:
        tree = {True: " (with uncommitted changes)", False: " (clean)", None: ""}[summary.dirty]
        parts.append(f"commit {summary.commit[:7]}{tree}")
    return ", ".join(parts)
