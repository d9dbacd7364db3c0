"""Tasks of a checkout in MLGym's form: a small one of our own, with the faults that theirs were seen to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Dialogue
from operant.envs.text.tasks import make_task
from operant.errors import UsageError

SHEETS = {
    "configs/tasks/parity.yaml": """
id: evenOrOdd
name: Even or odd
description: |-
  Say of each number in data/test.csv whether it is odd. {dataset_docs}
task_entrypoint: CSVSubmissionTasks
dataset_configs: [datasets/numbers.yaml]
starter_code: [data/parity/score.py]
baseline_scores:
  - Accuracy: 0.5
evaluation_paths: [score.py]
evaluation_read_only: true
sample_submission: data/parity/sample.csv
training_timeout: 20
""",
    "configs/datasets/numbers.yaml": """
name: numbers
description: There are eight of them.
data_path: data/parity/rows
is_local: true
""",
    "configs/tasks/coins.yaml": """
id: coinGame
name: Coins
description: Change play.py so that it wins.
task_entrypoint: PythonSubmissionTasks
starter_code: [data/coins/judge.py, data/coins/play.py, data/coins/target.py]
baseline_scores: [{Score: 0.0}]
evaluation_paths: [judge.py]
training_timeout: 20
""",
    "configs/tasks/far.yaml": """
id: farAway
name: Far
description: Its data is elsewhere.
task_entrypoint: CSVSubmissionTasks
dataset_configs: [datasets/far.yaml, datasets/none.yaml]
starter_code: [data/parity/score.py, data/none.py]
baseline_scores: [{r2: 0.5}]
evaluation_paths: [score.py]
""",
    "configs/datasets/far.yaml": "{name: far, data_path: hub/far, is_local: false}",
    "configs/tasks/model.yaml": """
id: bigModel
name: Big
description: Train it.
task_entrypoint: ModelSubmissionTasks
starter_code: [data/parity/score.py]
baseline_scores: [{Reward Mean: 3.0}]
evaluation_paths: [score.py]
""",
}
FILES = {
    "data/parity/rows/test.csv": "1\n2\n3\n4\n5\n6\n7\n8\n",
    "data/parity/rows/train.csv": "10,0\n11,1\n",
    "data/parity/rows/ground_truth.csv": "1\n0\n1\n0\n1\n0\n1\n0\n",
    "data/parity/sample.csv": "0\n" * 8,
    "data/parity/score.py": """
import argparse, json
asks = argparse.ArgumentParser()
asks.add_argument("--submission_file")
said = open(asks.parse_args().submission_file).read().split()
truth = open("data/ground_truth.csv").read().split()
print("scoring")
print(json.dumps({"Accuracy": sum(a == b for a, b in zip(said, truth)) / len(truth)}))
""",
    "data/coins/judge.py": """
import json
from play import side
from target import other
print(json.dumps({"Score": sum(side(n) == other(n) for n in range(10)) / 10}))
""",
    "data/coins/play.py": "def side(n):\n    return 'none'\n",
    "data/coins/target.py": "def other(n):\n    return 'heads' if n % 3 else 'tails'\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in {**SHEETS, **FILES}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def named(checkout: Path, name: str, **arguments: object) -> ResearchTask:
    task = make_task(f"mlgym:{checkout}/configs/tasks/{name}.yaml", arguments)
    assert isinstance(task, ResearchTask)
    return task


def begun(task: ResearchTask) -> Dialogue:
    return task.begin(task.problems("eval")[0], 0)


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
    assert any("forged" in mark for mark in task.folder.marks)
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
    for part in ("fetched from hub/far", "configs/datasets/none.yaml is not there", "data/none.py is not there"):
        assert part in marks
    with pytest.raises(UsageError, match="cannot be run"):
        task.problems("eval")


def test_a_package_that_is_not_installed_is_named(checkout: Path) -> None:
    (checkout / "data/coins/play.py").write_text("import no_such_package, jax\n")
    task = named(checkout, "coins", ceiling=1.0)
    assert any("GPU" in mark for mark in task.folder.marks)
    with pytest.raises(UsageError, match="no_such_package is not installed"):
        task.problems("eval")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("coins", {}, "nobody knows where Score ends"),
        ("model", {"ceiling": 9.0}, "which files are scored"),
        ("none", {}, "no such file"),
    ],
)
def test_what_their_format_does_not_say_must_be_given(
    checkout: Path, name: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        named(checkout, name, **arguments)


def test_files_that_are_none_are_told(checkout: Path) -> None:
    sheet = checkout / "configs/tasks/parity.yaml"
    sheet.write_text(sheet.read_text().replace("Accuracy", "Beauty"))
    with pytest.raises(UsageError, match="none of its metrics is known: Beauty"):
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
