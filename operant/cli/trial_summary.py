"""How a trial ended, as text or as JSON: the result, the failure, or how to continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.output import aside

if TYPE_CHECKING:
    from operant.launch.trial import Outcome
    from operant.run.run import Run

CURVE_METRIC = "train/return"


def ending(outcomes: Sequence[Outcome], until: int | None, figures: Mapping[Path, Sequence[Path]]) -> list[str]:
    """The lines after the live view: curve, summary, figure, what went wrong, what to do next."""
    from operant.run.layout import shown

    lines: list[str] = []
    for trial in _trials(outcomes):
        if _has_rows(trial):
            pictures = [path for path in figures.get(trial, ()) if path.suffix == ".png"]
            lines += ["", *result(trial), *(f"figure: {shown(path)}" for path in pictures)]
    for outcome in outcomes:
        if outcome.verdict == "failed":
            lines += ["", *failure(outcome)]
    return [*lines, "", *_next(outcomes, until)]


def ending_document(outcomes: Sequence[Outcome], code: int, figures: Mapping[Path, Sequence[Path]]) -> dict[str, Any]:
    """The same for `--json`."""
    from operant.run.layout import shown

    trials = _trials(outcomes)
    return {
        "run": shown(_experiment(outcomes)),
        "exit": code,
        "outcomes": [_outcome_document(outcome) for outcome in outcomes],
        "trials": [summary_document(trial) for trial in trials],
        "figures": [shown(path) for drawn in figures.values() for path in drawn],
    }


def result(trial: Path, metrics: bool = False) -> list[str]:
    """The curve and the summary of a trial, with SLM-Lab's `metrics` where they are wanted."""
    from operant.report.curve import draw_curve
    from operant.report.read import read_trial
    from operant.report.summary import render, summarise_record
    from operant.run.run import find_sessions
    from operant.spec.settings.algorithms import resume_kind

    record = read_trial(trial)
    summary = summarise_record(record, resume_kind(find_sessions(trial)[0].spec))
    return [draw_curve(record.curves(CURVE_METRIC), title=CURVE_METRIC), "", render(summary, metrics)]


def summary_document(trial: Path) -> dict[str, Any]:
    """The summary of a trial for `--json`."""
    from operant.report.summary import summarise
    from operant.run.layout import shown
    from operant.run.run import find_sessions
    from operant.spec.settings.algorithms import resume_kind

    summary = summarise(trial, resume_kind(find_sessions(trial)[0].spec))
    return {**summary.as_dict(), "path": shown(summary.path)}


def failure(outcome: Outcome) -> list[str]:
    """What broke, where, the last good checkpoint, the log, and the command that continues."""
    from operant.report.status import Follower
    from operant.run.layout import shown

    run = outcome.run
    last = last_checkpoint(run)
    frames = max(Follower(run.path).look().frames, last or 0)
    saved = f"frame {last:,}" if last is not None else "none; a resume starts at frame 0"
    return [
        f"{run.path.name} (seed {run.seed}) failed at frame {frames:,}: {outcome.cause}",
        *(f"  | {line}" for line in _last_words(outcome)),
        f"  last checkpoint: {saved}",
        f"  log:             {shown(outcome.log) if outcome.log else 'none'}",
        f"  continue:        operant resume {shown(run.path)}",
    ]


def _last_words(outcome: Outcome) -> list[str]:
    """The end of the log of a session that could not record its failure itself."""
    if outcome.run.error or outcome.signal_name or outcome.log is None or not outcome.log.is_file():
        return []
    lines = outcome.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.strip()][-3:]


def last_checkpoint(run: Run) -> int | None:
    """Frames of the newest checkpoint, or None."""
    from operant.run.checkpoint import list_checkpoints

    saved = list_checkpoints(run.checkpoints)
    return saved[-1].at.frames if saved else None


def saved_words(runs: Sequence[Run]) -> str:
    """What a stop leaves behind: whether there are checkpoints, and who has none yet."""
    without = [run.path.name for run in runs if last_checkpoint(run) is None]
    if not without:
        return "the checkpoints are good"
    if len(without) == len(runs):
        return "nothing was saved yet, so a resume starts at frame 0"
    return f"the checkpoints are good, but {', '.join(without)} saved nothing yet and will start at frame 0"


def _next(outcomes: Sequence[Outcome], until: int | None) -> list[str]:
    from operant.run.layout import shown

    place = shown(_experiment(outcomes))
    verdicts = [outcome.verdict for outcome in outcomes]
    if "stopped" in verdicts:
        return [f"stopped; {saved_words([outcome.run for outcome in outcomes])}. Continue: operant resume {place}"]
    if "failed" in verdicts:
        return [f"{verdicts.count('failed')} of {len(verdicts)} sessions failed. Continue: operant resume {place}"]
    go_on = f"  operant resume {place} -s env.max_frame=...    (a fork with a larger budget)"
    if until is not None and any(outcome.run.state != "done" for outcome in outcomes):
        go_on = f"  operant resume {place}    (to the full budget)"
    return ["next:", *(f"  operant {verb} {place}" for verb in ("show", "watch", "plot")), go_on]


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    from operant.run.layout import shown

    failed = outcome.verdict == "failed"
    return {
        "session": shown(outcome.run.path),
        "seed": outcome.run.seed,
        "verdict": outcome.verdict,
        "state": outcome.run.state,
        "code": outcome.code,
        "cause": outcome.cause if failed else None,
        "checkpoint": last_checkpoint(outcome.run),
        "log": shown(outcome.log) if outcome.log else None,
        "continue": None if outcome.verdict == "done" else f"operant resume {shown(outcome.run.path)}",
    }


def draw_figures(runs: Sequence[Run]) -> dict[Path, list[Path]]:
    """The figures of each trial that these sessions belong to, drawn now."""
    return {trial: _figures(trial) for trial in dict.fromkeys(run.path.parent for run in runs)}


def _figures(trial: Path) -> list[Path]:
    """Draw the curve into the experiment's report folder; a trial without rows has none."""
    from operant.report.plots import plot_trials
    from operant.run.layout import REPORT_FOLDER

    try:
        return plot_trials([trial], trial.parent / REPORT_FOLDER, CURVE_METRIC) if _has_rows(trial) else []
    except Exception as fault:
        # A full disk or a broken plotting library must not hide how the training itself ended.
        aside(f"warning: the figure was not drawn: {fault}")
        return []


def _has_rows(trial: Path) -> bool:
    from operant.report.read import read_trial

    return any(len(curve.x) for curve in read_trial(trial).curves(CURVE_METRIC))


def _trials(outcomes: Sequence[Outcome]) -> list[Path]:
    return list(dict.fromkeys(outcome.run.path.parent for outcome in outcomes))


def _experiment(outcomes: Sequence[Outcome]) -> Path:
    return outcomes[0].run.path.parent.parent
