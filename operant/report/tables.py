"""The list of experiments: what was run, how far it came, what it scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from operant.errors import OperantError
from operant.report.cost import cost_of, money
from operant.report.differences import leaves
from operant.report.experiment_row import ExperimentRow
from operant.report.formatting import columns, compact, duration
from operant.report.intervals import mean_intervals
from operant.report.read import EVAL_SCORE, FINAL_SCORE
from operant.report.run_filters import RunFilter, is_priced, ordered
from operant.report.search_table import inherited_frames, read_search
from operant.report.summary import overall_state
from operant.report.tail import newest_values
from operant.run.inventory import Fault, resume_faults
from operant.run.layout import METRICS_FILE, session_paths, shown, trial_paths
from operant.run.run import Experiment, list_experiments, read_session
from operant.run.tags import Tags, read_tags

UNREADABLE = "unreadable"
HEAD = ["experiment", "state", "sessions", "frames", "score", "age", "cost", "tags"]
OPTIONAL = ("cost", "tags")


@dataclass(frozen=True)
class _Standing:
    """What the end of a session's files says; the frames of a fork within a search are those that it trained itself.

    `faults` are those that harm a resume.
    """

    state: str
    frames: int
    seconds: float
    final: float | None
    last: float | None
    faults: list[Fault]


def experiment_rows(
    root: Path, now: datetime | None = None, wanted: RunFilter | None = None, order: str = "date"
) -> list[ExperimentRow]:
    """The wanted experiments under a folder (all of them by default), newest first or as ordered.

    Only the ends of files are read, and those only of runs whose settings and tags fit.
    """
    now, wanted = now or datetime.now(UTC), wanted or RunFilter(archived=True)
    experiments = list_experiments(Path(root))[::-1]
    specs = [_spec(experiment) for experiment in experiments]
    settings = [{} if isinstance(spec, OperantError) else leaves(spec) for spec in specs]
    wanted.refuse_unknown(settings)
    found = [
        _row(experiment, spec, tags, now)
        for experiment, spec, chosen in zip(experiments, specs, settings, strict=True)
        if wanted.fits_spec("/".join(experiment.path.parts[-2:]), chosen, tags := read_tags(experiment.path))
    ]
    scored = [number for number, (_, scores) in enumerate(found) if scores]
    estimates = dict(zip(scored, mean_intervals([found[number][1] for number in scored]), strict=True))
    rows = [replace(row, score=estimates.get(number)) for number, (row, _) in enumerate(found)]
    fitting = filter(wanted.fits_row, rows)
    return ordered((replace(row, cost=cost_of(row.path)) for row in fitting) if order == "cost" else fitting, order)


def render_experiments(rows: Sequence[ExperimentRow]) -> str:
    """The list as aligned plain text, or a sentence when it is empty."""
    if not rows:
        return "no runs here yet; start one: `operant train ppo_cartpole`"
    priced = is_priced(rows)
    cells = [_cells(row, priced) for row in rows]
    visible = [at for at, name in enumerate(HEAD) if name not in OPTIONAL or any(row[at] for row in cells)]
    lines = columns([[row[at] for at in visible] for row in (HEAD, *cells)], right={2, 3})
    notes = [f"{shown(row.path)}: {row.error}" for row in rows if row.error]
    if any(row.score is not None and not row.score_is_final for row in rows):
        notes.append("~ score of the last evaluation; training was not over")
    return "\n".join([*lines, *notes])


def _spec(experiment: Experiment) -> dict[str, Any] | OperantError:
    """The resolved spec, or why it cannot be read, which the row says."""
    try:
        return experiment.spec
    except OperantError as error:
        return error


def _row(
    experiment: Experiment, spec: dict[str, Any] | OperantError, tags: Tags, now: datetime
) -> tuple[ExperimentRow, list[float]]:
    """The row without its score, and the scores of the seeds that it is over."""
    try:
        if isinstance(spec, OperantError):
            raise spec
        return _readable_row(experiment, spec, tags, now)
    except OperantError as error:
        path, cause = experiment.path, error.cause if error.place is None else f"{error.place}: {error.cause}"
        return ExperimentRow(path.parent.name, path.name, path, UNREADABLE, 0, 0, 0, 0, None, False, None, cause), []


def _readable_row(
    experiment: Experiment, spec: dict[str, Any], tags: Tags, now: datetime
) -> tuple[ExperimentRow, list[float]]:
    document = experiment.document
    trials = [[_standing(session) for session in session_paths(trial)] for trial in trial_paths(experiment.path)]
    sessions = [standing for trial in trials for standing in trial]
    scores, is_final = _best_scores(trials)
    row = ExperimentRow(
        name=str(document.get("spec", experiment.path.parent.name)),
        stamp=experiment.path.name,
        path=experiment.path,
        state=_state(experiment, sessions),
        trials=len(trials),
        sessions_done=sum(standing.state == "done" for standing in sessions),
        sessions=max(len(sessions), len(trials) * int(spec.get("meta", {}).get("max_session", 1))),
        frames=sum(standing.frames for standing in sessions),
        score=None,
        score_is_final=is_final,
        age=_age(document.get("created"), now),
        error="; ".join(str(fault) for standing in sessions for fault in standing.faults) or None,
        env=spec.get("env", {}).get("name"),
        algorithm=spec.get("agent", {}).get("algorithm", {}).get("name"),
        seconds=sum(standing.seconds for standing in sessions),
        tags=tags.tags,
        archived=tags.archived,
    )
    return row, scores


def _state(experiment: Experiment, sessions: Sequence[_Standing]) -> str:
    """One word for all sessions; of a search that is over it is done, although trials are paused for good."""
    state = overall_state([standing.state for standing in sessions])
    search = read_search(experiment.path)
    return "done" if search and search.get("state") == "done" and state == "stopped" else state


def _standing(session: Path) -> _Standing:
    run, document = read_session(session)
    state = run.state_by(document)
    newest = newest_values(session / METRICS_FILE, ("frames", "seconds", FINAL_SCORE, EVAL_SCORE))
    return _Standing(
        state=state,
        frames=max(0, int(newest.get("frames", 0)) - inherited_frames(run)),
        seconds=float(newest.get("seconds", 0.0)),
        final=newest.get(FINAL_SCORE),
        last=newest.get(EVAL_SCORE),
        faults=resume_faults(run, document, state),
    )


def _best_scores(trials: Sequence[Sequence[_Standing]]) -> tuple[list[float], bool]:
    """The final scores of the best trial's seeds, or the last evaluations when no trial has a final one."""
    for is_final in (True, False):
        scores = [[s.final if is_final else s.last for s in trial] for trial in trials]
        known = [[score for score in trial if score is not None] for trial in scores]
        scored = [trial for trial in known if trial]
        if scored:
            return max(scored, key=fmean), is_final
    return [], False


def _age(created: object, now: datetime) -> float | None:
    try:
        begun = datetime.fromisoformat(str(created))
    except ValueError:
        return None
    return max(0.0, (now - (begun if begun.tzinfo else begun.replace(tzinfo=UTC))).total_seconds())


def _cells(row: ExperimentRow, priced: bool) -> list[str]:
    mark = "" if row.score_is_final else "~ "
    best = f", best of {row.trials} trials" if row.trials > 1 else ""
    return [
        f"{row.name}/{row.stamp}",
        row.state,
        f"{row.sessions_done}/{row.sessions}",
        compact(row.frames),
        "-" if row.score is None else f"{mark}{row.score.text()}{best}",
        "-" if row.age is None else duration(row.age),
        "" if row.cost is None else money(row.cost.dollars or 0.0) if priced else duration(row.cost.compute_seconds),
        " ".join([*row.tags, *(["(archived)"] if row.archived else [])]),
    ]
