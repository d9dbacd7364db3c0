"""Whose failure it is when their evaluation gives no score: what the agent is told, and what is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.text.dialogue import Response
from operant.envs.text.task import Verdict
from tests.unit.envs.research.mlgym_checkout import FILES, begun, named

SCORE = FILES["data/parity/score.py"]
LATE = "import time; time.sleep(60)\n"


def handed_in(
    checkout: Path, evaluation: str, submission: str = "1 1 1 1 1 1 1 1", seconds: int = 20
) -> tuple[Response, Verdict]:
    sheet = checkout / "configs/tasks/parity.yaml"
    sheet.write_text(sheet.read_text().replace("training_timeout: 20", f"training_timeout: {seconds}"))
    (checkout / "data/parity/score.py").write_text(evaluation)
    rollout = begun(named(checkout, "parity"))
    rollout.hear(f"write submission.csv {submission}")
    response = rollout.hear("validate")
    return response, rollout.verdict()


@pytest.mark.parametrize(
    ("evaluation", "seconds", "said"),
    [
        (f"1 / 0\n{SCORE}", 20, "ZeroDivisionError"),
        (f"{LATE}{SCORE}", 1, "its time was over after 1 s"),
        (SCORE.replace('"Accuracy"', '"Beauty"'), 20, "it printed no Accuracy"),
        (SCORE.replace("print(json", "str(json"), 20, "it printed no Accuracy: scoring"),
        ("import json\nfrom broken_package import anything\n" + SCORE, 20, "its packages cannot be imported"),
    ],
    ids=["crash", "timeout", "other metric", "no output", "package"],
)
def test_an_evaluation_that_fails_on_a_good_submission_too_fines_nobody(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, evaluation: str, seconds: int, said: str
) -> None:
    site = checkout / "site"
    site.mkdir()
    (site / "broken_package.py").write_text("raise ImportError('a library is missing')\n")
    mine = [each for each in checkout.parents if "pytest-of-" in str(each)]
    for folder in (checkout, *mine):  # the sandbox's user must reach the package
        folder.chmod(0o755)
    monkeypatch.syspath_prepend(str(site))
    response, verdict = handed_in(checkout, evaluation, seconds=seconds)
    assert (response.fault, response.reward, response.score) == (None, None, None)
    assert "not counted" in response.messages[0].text
    assert "validations left 3" in response.messages[0].text
    assert (verdict.score, verdict.outcome) == (None, "error")
    assert said in verdict.note
    assert (verdict.parts["faults"], verdict.parts["grader_failed"]) == (0, 1)


def test_a_bad_submission_is_the_agents_own(checkout: Path) -> None:
    strict = SCORE.replace('print("scoring")', "assert len(said) == len(truth), 'eight rows are asked'")
    response, verdict = handed_in(checkout, strict, "1 1 1")
    assert "eight rows are asked" in str(response.fault)
    assert response.reward is not None
    assert response.reward < 0
    assert (verdict.score, verdict.outcome, verdict.parts["faults"]) == (0.0, "wrong", 1)
    assert "grader_failed" not in verdict.parts


def test_an_agent_that_is_late_where_others_are_not_is_late_itself(checkout: Path) -> None:
    late = SCORE.replace("truth = ", "import time; time.sleep(30 if '9' in said else 0)\ntruth = ")
    response, verdict = handed_in(checkout, late, "9", seconds=2)
    assert "its time was over after 2 s" in str(response.fault)
    assert (verdict.score, verdict.outcome) == (0.0, "wrong")


def test_a_game_whose_opponent_fails_is_the_tasks_error(checkout: Path) -> None:
    (checkout / "data/coins/target.py").write_text("def other(n):\n    raise KeyError(n)\n")
    rollout = begun(named(checkout, "coins", ceiling=1.0))
    assert rollout.hear("validate").fault is None
    verdict = rollout.verdict()
    assert (verdict.outcome, verdict.score) == ("error", None)
    assert "KeyError" in verdict.note
