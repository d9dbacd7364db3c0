"""What is measured of verifiers that err in known ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.text.arithmetic import Arithmetic
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import RIGHT, WRONG, Problem, Verdict, failed
from operant.envs.text.tasks import make_task
from operant.envs.text.validate import RIGHT_KINDS, WRONG_KINDS, Report, validate


class Literal(Arithmetic):
    """Takes nothing but the digits."""

    def verify(self, problem: Problem, completion: str) -> Verdict:
        return RIGHT if completion == str(problem.answer) else WRONG


class Lenient(Arithmetic):
    """Takes a number anywhere in the text."""

    def verify(self, problem: Problem, completion: str) -> Verdict:
        return RIGHT if str(problem.answer) in completion else WRONG


class Broken(Arithmetic):
    """Never comes to a verdict."""

    def verify(self, problem: Problem, completion: str) -> Verdict:
        return failed("the scales are broken", "undecided")


def report_of(kind: type[Arithmetic]) -> Report:
    kind.__module__ = "operant.envs.text.of_a_test"  # verified in this process, which only tasks of Operant are
    task = kind(size=50, eval_size=20)
    with Verifiers([task], 1) as verifiers:
        return validate(task, verifiers, samples=300)


def test_a_verifier_that_refuses_other_forms() -> None:
    report = report_of(Literal)
    refused, right = report.errors(RIGHT_KINDS)
    assert (report.verdict_counts["gold"].valid, len(report.verdict_counts["gold"].errors)) == (70, 0)
    assert right == 370
    assert refused == sum(
        count for form, (count, _) in report.verdict_counts["equivalent"].forms.items() if form != "alone"
    )
    assert report.errors(WRONG_KINDS) == (0, 900)
    assert report.sound


def test_a_verifier_that_pays_for_what_is_near() -> None:
    report = report_of(Lenient)
    assert report.errors(RIGHT_KINDS)[0] == 0
    assert report.verdict_counts["near_miss"].forms["taken back"][1] > 0
    assert report.verdict_counts["cheat"].forms["all numbers"][1] > 0
    assert not report.sound


def test_a_verifier_without_verdicts_has_no_errors_and_is_not_sound() -> None:
    report = report_of(Broken)
    assert report.errors((*RIGHT_KINDS, *WRONG_KINDS)) == (0, 0)
    assert report.invalid == 70 + 4 * 300
    assert not report.sound


@pytest.mark.parametrize("answer", ["", "n/a", "many"])
@pytest.mark.parametrize("verifier", ["number", "last_number"])
def test_a_reference_answer_that_is_none_is_nobodys_mistake(tmp_path: Path, answer: str, verifier: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f'{{"prompt": "?", "answer": "{answer}"}}\n')
    task = make_task(str(tmp_path / "rows.jsonl"), {"verifier": verifier, "eval_share": 0.0})
    verdict = task.verify(task.problems("train")[0], "The answer is 5.")
    assert (verdict.score, verdict.outcome) == (None, "no_gold")


@pytest.mark.parametrize(("score", "outcome"), [(None, "wrong"), (0.0, "timeout"), (float("nan"), "partial")])
def test_invalid_is_never_a_number(score: float | None, outcome: str) -> None:
    with pytest.raises(ValueError, match="score"):
        Verdict(score, outcome)  # pyright: ignore[reportArgumentType]
