"""What `operant tasks validate` says of verifiers: how often they are wrong, and about what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from operant.cli.output import plural, say

if TYPE_CHECKING:
    from operant.envs.text.validate import GradedSample, Kind, Report, VerdictCounts

SHOWN_FAILURES = 5
KEPT_FAILURES = 50
SHOWN_TEXT = 100  # characters of an answer
HEAD = [
    "task", "gold refused", "other forms refused", "false negatives",
    "near misses paid", "others' answers paid", "cheats paid", "false positives", "invalid", "time", "",
]  # fmt: skip
SAID: dict[Kind, str] = {
    "gold": "a gold answer",
    "equivalent": "a right answer",
    "near_miss": "a near miss",
    "other": "another problem's answer",
    "cheat": "a cheat",
}


def rate(errors: int, count: int) -> dict[str, Any]:
    """How often something happens, as `--json` gives it: the rate and its 95 % interval."""
    from operant.report.stats import rate_interval

    found = rate_interval(errors, count) if count else None
    point, low, high = (found.point, found.low, found.high) if found else (None, None, None)
    return {"errors": errors, "count": count, "rate": point, "low": low, "high": high}


def rate_text(errors: int, count: int) -> str:
    """`0.12 % [0.07, 0.21]`, or that there is nothing to count."""
    found = rate(errors, count)
    if not count:
        return "none tried"
    return f"{found['rate']:.2%} [{100 * found['low']:.2f}, {100 * found['high']:.2f}]".replace("%", " %")


def report_data(report: Report) -> dict[str, Any]:
    """A report as `--json` gives it."""
    from operant.envs.text.validate import RIGHT_KINDS, WRONG_KINDS

    return {
        "task": report.task,
        "problems": report.problems,
        "sound": report.sound,
        "false_negatives": rate(*report.errors(RIGHT_KINDS)),
        "false_positives": rate(*report.errors(WRONG_KINDS)),
        "invalid": report.invalid,
        "kinds": {kind: _counts_data(counts) for kind, counts in report.verdict_counts.items()},
        "shared": report.shared,
        "right_after_all": report.right_after_all,
        "seconds": report.seconds,
    }


def _counts_data(counts: VerdictCounts) -> dict[str, Any]:
    forms = {form: rate(errors, count) for form, (count, errors) in sorted(counts.forms.items())}
    return {
        **rate(len(counts.errors), counts.valid),
        "forms": forms,
        "failures": [_sample_data(each) for each in counts.errors[:KEPT_FAILURES]],
        "invalid": [_sample_data(each) for each in counts.invalid[:KEPT_FAILURES]],
    }


def _sample_data(graded: GradedSample) -> dict[str, Any]:
    sample, verdict = graded.sample, graded.verdict
    answer = {"id": sample.problem.id, "form": sample.form, "answer": sample.answer[-SHOWN_TEXT:]}
    return {**answer, "score": verdict.score, "outcome": verdict.outcome, "note": verdict.note}


def print_reports(reports: Sequence[Report]) -> None:
    """A table of all verifiers, and under it what each is wrong about."""
    from operant.report.formatting import columns

    if not reports:
        return
    say(*(line.rstrip() for line in columns([HEAD, *map(_row, reports)])))
    for report in reports:
        for kind in SAID:
            _print_errors(report.verdict_counts[kind], kind, report.task)
        if twice := sorted(set(report.right_after_all)):
            shown = ", ".join(twice[:SHOWN_FAILURES]) + (" ..." if len(twice) > SHOWN_FAILURES else "")
            count = plural(len(report.right_after_all), "answer")
            say(f"  {report.task}: not counted, since right after all: {count} to {shown}")
        if report.shared:
            say(f"  {report.task}: {plural(len(report.shared), 'question')} in both splits, such as {report.shared[0]}")


def _row(report: Report) -> list[str]:
    from operant.envs.text.validate import RIGHT_KINDS, WRONG_KINDS
    from operant.report.formatting import duration

    wrong = {kind: f"{len(counts.errors):,} of {counts.valid:,}" for kind, counts in report.verdict_counts.items()}
    return [
        report.task,
        *(wrong[kind] for kind in RIGHT_KINDS),
        rate_text(*report.errors(RIGHT_KINDS)),
        *(wrong[kind] for kind in WRONG_KINDS),
        rate_text(*report.errors(WRONG_KINDS)),
        f"{report.invalid:,}",
        duration(report.seconds),
        "sound" if report.sound else "NOT SOUND",
    ]


def _print_errors(counts: VerdictCounts, kind: Kind, task: str) -> None:
    """Each form with errors, and one of them; then one invalid verdict of each reason."""
    worst = sorted(counts.forms.items(), key=lambda each: -each[1][1])
    for form, (count, errors) in worst[:SHOWN_FAILURES]:
        if errors:
            one = next(each for each in counts.errors if each.sample.form == form)
            said = f"{one.verdict.outcome} {one.verdict.score:g}" + (
                f", {one.verdict.note}" if one.verdict.note else ""
            )
            times = f"{errors:,} of {count:,} times" + (f" ({form})" if form != kind else "")
            say(f"  {task}: {SAID[kind]} was misjudged {times}, such as {one.sample.problem.id}: {said}: {_shown(one)}")
    for why in sorted({each.verdict.outcome for each in counts.invalid}):
        one = next(each for each in counts.invalid if each.verdict.outcome == why)
        times = sum(each.verdict.outcome == why for each in counts.invalid)
        said = f"{one.sample.problem.id}: {one.verdict.note}"
        say(f"  {task}: {SAID[kind]} is invalid {times} times ({why}), such as {said}")


def _shown(graded: GradedSample) -> str:
    text = graded.sample.answer
    return repr(text if len(text) <= SHOWN_TEXT else f"...{text[-SHOWN_TEXT:]}")
