"""Tasks of a checkout in MLGym's form: which files are scored, by what, and what is told before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.text.tasks import make_task
from operant.errors import UsageError
from tests.unit.envs.research.mlgym_checkout import FILES, SHEETS, begun, named


def test_a_submission_is_scored_by_their_evaluator_out_of_reach(checkout: Path) -> None:
    task = named(checkout, "parity")
    assert task.name == "mlgym_even_or_odd"
    rollout = begun(task)
    told = rollout.opening()[1].text
    assert "There are eight of them." in told
    listed = rollout.hear("bash ls . data; echo 'print(1)' > score.py; echo 1 1 1 1 1 1 1 1 > data/ground_truth.csv")
    assert "ground_truth" not in told + listed.messages[0].text
    assert rollout.hear("write submission.csv 1 1 1 1 1 1 1 1").fault is None
    assert rollout.hear("validate").score == 0.5, "what the agent made of evaluator and labels is not used"
    rollout.hear("write submission.csv 1 0 1 0 1 0 1 0")
    assert rollout.hear("validate").score == 1.0
    verdict = rollout.verdict()
    assert (verdict.score, verdict.parts["hidden"]) == (1.0, 1.0)


def test_without_a_submission_there_is_no_score(checkout: Path) -> None:
    rollout = begun(named(checkout, "parity"))
    assert r"no submission.csv" in str(rollout.hear("validate").fault)
    rollout.hear("write submission.csv 1")
    assert rollout.hear("validate").score == 0.125
    rollout.close()


def test_the_opponent_of_a_game_is_the_pristine_one(checkout: Path) -> None:
    task = named(checkout, "coins", ceiling=1.0)
    assert task.folder.task.artefacts == ("play.py",)
    assert not any("forged" in mark for mark in task.folder.marks), "it runs apart from its evaluation"
    rollout = begun(task)
    rollout.hear("```write target.py\ndef other(n):\n    return 'none'\n```")
    assert rollout.hear("validate").score == 0.0
    rollout.hear("```write play.py\nfrom target import other as side\n```")
    assert rollout.hear("validate").score == 1.0
    rollout.hear("```write play.py\n1 / 0\n```")
    assert "ZeroDivisionError" in str(rollout.hear("validate").fault)
    rollout.close()


def test_labels_that_are_the_sample_submission_are_marked(checkout: Path) -> None:
    (checkout / "data/parity/sample.csv").write_text(FILES["data/parity/rows/ground_truth.csv"])
    marks = "; ".join(named(checkout, "parity").folder.marks)
    assert "its labels are its sample submission" in marks
    (checkout / "data/parity/sample.csv").write_text(FILES["data/parity/sample.csv"])
    assert "sample" not in "; ".join(named(checkout, "parity").folder.marks)


def test_what_is_missing_is_marked_and_refused_before_the_work(checkout: Path) -> None:
    task = named(checkout, "far")
    marks = "; ".join(task.folder.marks)
    for part in (
        "nor at FOLDER/hub/far: hf download",
        "configs/datasets/none.yaml is not there",
        "data/none.py is not there",
    ):
        assert part in marks
    with pytest.raises(UsageError, match="cannot be run"):
        task.problems("eval")


def test_a_package_that_is_not_installed_is_named(checkout: Path) -> None:
    (checkout / "data/coins/play.py").write_text("import no_such_package, jax\n")
    task = named(checkout, "coins", ceiling=1.0)
    assert any("GPU" in mark for mark in task.folder.marks)
    with pytest.raises(UsageError, match="packages that are not installed: no_such_package"):
        task.problems("eval")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("coins", {"ceiling": -1.0}, "the ceiling must lie up from the baseline"),
        ("none", {}, "no such file"),
    ],
)
def test_what_their_format_does_not_say_must_be_given(
    checkout: Path, name: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        named(checkout, name, **arguments)


def test_without_a_known_end_twice_the_baseline_is_the_ceiling_and_marked(checkout: Path) -> None:
    task = named(checkout, "model")
    assert task.folder.task.ceiling == 6.0
    assert any("nobody knows where its metric ends" in mark for mark in task.folder.marks)


def test_a_model_task_that_does_not_list_its_files_is_refused_at_its_description(checkout: Path) -> None:
    sheet = checkout / "configs/tasks/model.yaml"
    sheet.write_text(sheet.read_text().replace("`", ""))
    with pytest.raises(UsageError, match=r"model.yaml:4:14: .*which files are scored"):
        named(checkout, "model")


def test_files_that_are_none_are_told(checkout: Path) -> None:
    sheet = checkout / "configs/tasks/parity.yaml"
    sheet.write_text(sheet.read_text().replace("Accuracy", "Beauty"))
    with pytest.raises(UsageError, match=r"parity.yaml:10:3: none of its metrics is known: Beauty"):
        named(checkout, "parity")
    sheet.write_text("id: x\nname: y\n")
    with pytest.raises(UsageError, match="description"):
        named(checkout, "parity")
    lost = checkout / "lost.yaml"
    lost.write_text(SHEETS["configs/tasks/parity.yaml"])
    with pytest.raises(UsageError, match="lies in no checkout"):
        make_task(f"mlgym:{lost}", {})


def test_a_folder_says_its_own_ceiling(checkout: Path) -> None:
    with pytest.raises(UsageError, match=r"task\.yaml"):
        make_task(str(Path(__file__).with_name("guess")), {"ceiling": 2.0})
