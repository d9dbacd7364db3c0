"""The real datasets: all their answers are right, none of a thousand others is. And what is said without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operant.envs.text.pool import Verifiers
from operant.envs.text.sources import in_share
from operant.envs.text.tasks import make_task
from operant.envs.text.validate import WRONG_KINDS, validate
from operant.errors import UsageError


@pytest.mark.parametrize(
    ("name", "problems", "gold"),
    [
        ("gsm8k", {"train": 7_473, "eval": 1_319}, 8_792),
        ("svamp", {"train": 700, "eval": 300}, 1_000),
        pytest.param("math", {"eval": 500}, 500, marks=pytest.mark.slow),
        ("ifeval", {"eval": 541}, 305),
    ],
)
def test_gold_is_right_and_a_thousand_others_are_not(data: str, name: str, problems: dict[str, int], gold: int) -> None:
    if name == "math":
        pytest.importorskip("math_verify")
    task = make_task(name, {"data": data})
    with Verifiers([task], workers=2) as verifiers:
        report = validate(task, verifiers)
    counts = {kind: counts.valid + len(counts.invalid) for kind, counts in report.verdict_counts.items()}
    assert (report.problems, counts["gold"], counts["other"]) == (problems, gold, 1_000)
    assert report.verdict_counts["gold"].errors == []
    assert report.errors(WRONG_KINDS)[0] == 0
    assert report.sound


def write(folder: Path, rows: int = 4) -> str:
    (folder / "gsm8k").mkdir()
    for split in ("train", "test"):
        lines = [{"question": f"{split} {i}?", "answer": f"It is <<{i}+0={i}>>{i}.\n#### {i}"} for i in range(rows)]
        (folder / "gsm8k" / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder)


def test_a_question_and_its_stops(tmp_path: Path) -> None:
    problem = make_task("gsm8k", {"data": write(tmp_path)}).problems("eval")[1]
    assert problem.prompt == "Q: test 1?\nA:"
    assert problem.stop == ("[Question]", "Question:", "Q:", "\n\n\n")
    assert problem.id == "gsm8k/eval/1"


def test_examples_come_first_and_are_never_asked(tmp_path: Path) -> None:
    task = make_task("gsm8k", {"data": write(tmp_path), "shots": 2})
    assert task.problems("eval")[0].prompt == (
        "Q: train 0?\nA: It is 0.\n#### 0\n\nQ: train 1?\nA: It is 1.\n#### 1\n\nQ: test 0?\nA:"
    )
    assert [problem.id for problem in task.problems("train")] == ["gsm8k/train/2", "gsm8k/train/3"]


def test_the_folder_may_be_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERANT_DATA", write(tmp_path))
    assert len(make_task("gsm8k", {}).problems("eval")) == 4


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({}, "its data folder is not set"),
        ({"data": "/no/where"}, "there is no file gsm8k/test.jsonl in /no/where"),
    ],
)
def test_data_that_is_not_there(arguments: dict[str, Any], cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPERANT_DATA", raising=False)
    with pytest.raises(UsageError, match=cause) as error:
        make_task("gsm8k", arguments).problems("eval")
    assert error.value.remedy


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    with (tmp_path / "gsm8k" / "test.jsonl").open("a") as file:
        file.write("{oops\n")
    with pytest.raises(UsageError, match=r"test.jsonl:5: this line is no JSON"):
        make_task("gsm8k", {"data": folder}).problems("eval")


def test_math_can_be_shared_out(tmp_path: Path) -> None:
    rows = [{"problem": f"p{i}", "solution": rf"\boxed{{{i}}}", "level": i % 5 + 1} for i in range(100)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="nothing to train on"):
        make_task("math", {"data": str(tmp_path)}).problems("train")
    task = make_task("math", {"data": str(tmp_path), "train_share": 0.5})
    train, held = task.problems("train"), task.problems("eval")
    assert len(train) + len(held) == 100
    assert 30 < len(train) < 70
    assert not {one.prompt for one in train} & {one.prompt for one in held}
    assert len(make_task("math", {"data": str(tmp_path), "level": [1, 2]}).problems("eval")) == 40
    assert held[0].answer["answer"] == task.gold(held[0])[8:-1]  # type: ignore[index]


def test_a_share_is_stable_and_about_right() -> None:
    chosen = {str(i) for i in range(10_000) if in_share(str(i), 0.2, seed=1)}
    assert 1_800 < len(chosen) < 2_200
    assert chosen != {str(i) for i in range(10_000) if in_share(str(i), 0.2, seed=2)}


def test_reasoning_gym(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    task = make_task("reasoning_gym", {"dataset": "chain_sum", "size": 40, "eval_size": 20})
    train, held = task.problems("train"), task.problems("eval")
    assert not {one.prompt for one in train} & {one.prompt for one in held}
    problem = held[0]
    assert task.verify(problem, f"So <answer> {problem.answer['answer']} </answer>").outcome == "right"
    assert task.verify(problem, "<answer>nothing</answer>").outcome == "wrong"
    assert task.verify(problem, problem.answer["answer"]).outcome == "unparsed"


def test_reasoning_gym_runs_no_code_of_an_answer(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    task = make_task("reasoning_gym", {"dataset": "polynomial_equations", "size": 3, "eval_size": 2})
    problem = task.problems("train")[0]
    for code in (f"open('{tmp_path}/x', 'w')", f"__import__('os').system('touch {tmp_path}/x')"):
        assert task.verify(problem, f"<answer>{code}</answer>").outcome in ("wrong", "error")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("dataset", "cause"),
    [
        ("chain_sums", "no dataset 'chain_sums'"),
        ("puzzle24", "the verifier of puzzle24 is not sound"),
        ("word_ladder", "other problems in every process"),
    ],
)
def test_datasets_that_cannot_be_had(dataset: str, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("reasoning_gym")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(UsageError, match=cause):
        make_task("reasoning_gym", {"dataset": dataset})
