"""The graders of prediction tasks on made-up data: perfect answers, samples, and what the agent is shown."""

from __future__ import annotations

import csv
import gzip
import io
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest

from operant.envs.research.grading import Split, Work

PASSENGERS = "PassengerId,Survived,Pclass,Name,Sex,Age,SibSp,Parch,Ticket,Fare,Cabin,Embarked"
DIAMONDS = "carat,cut,color,clarity,depth,table,price,x,y,z"
SPLITS: tuple[Split, ...] = ("validation", "hidden")


def made_up(task: str, folder: Path) -> dict[str, Path]:
    """Data in the form of the real files."""
    rng = Random(task)
    if task == "fashion_mnist":
        pictures = np.random.default_rng(0).integers(0, 256, (5200, 28, 28), np.uint8)
        (folder / "images").write_bytes(gzip.compress(bytes(16) + pictures.tobytes(), 1))
        (folder / "labels").write_bytes(gzip.compress(bytes(8) + bytes(at % 10 for at in range(5200)), 1))
        return {"images": folder / "images", "labels": folder / "labels"}
    if task == "titanic":
        rows = [
            f'{at},{int(at % 5 < 2)},3,"Doe, Mr. John {at}",male,{rng.uniform(1, 80):.4f},0,0,T{at},7.25,,S'
            for at in range(900)
        ]
        (folder / "passengers").write_text("\n".join([PASSENGERS, *rows, *rows[:9]]))
        return {"passengers": folder / "passengers"}
    rows = [f"{rng.uniform(0.2, 3):.6f},Ideal,E,SI2,61,55,{rng.randint(300, 9000)},1,1,1" for _ in range(3200)]
    (folder / "diamonds").write_text("\n".join([DIAMONDS, *rows]))
    return {"diamonds": folder / "diamonds"}


def grader_of(task: str) -> ModuleType:
    return import_module(f"operant.envs.research.tasks.{task}.grader")


def grade(task: str, data: dict[str, Path], answer: bytes, split: Split) -> float:
    return grader_of(task).grade(Work({"predictions.csv": answer}, split, 9, Path("none"), data, problem=4))


def truths(task: str, data: dict[str, Path]) -> list[str]:
    """The labels of all rows to predict, found from outside as an agent could not."""
    grader = grader_of(task)
    if task == "fashion_mnist":
        _, labels = grader.pictures(data["images"], data["labels"])
        return [str(labels[row]) for row in grader.division(data["images"], data["labels"], 4).test]
    (path,) = data.values()
    return [grader.sheet(path).labels[row] for row in grader.division(path, 4).test]


def answer_of(target: str, numbers: list[str]) -> bytes:
    return "\n".join([f"id,{target}", *(f"{at},{number}" for at, number in enumerate(numbers))]).encode()


@pytest.mark.parametrize(
    ("task", "target", "perfect"), [("titanic", "survived", 1), ("diamonds", "price", 0), ("fashion_mnist", "label", 1)]
)
def test_the_truth_is_perfect_and_halves_are_judged_apart(
    task: str, target: str, perfect: float, tmp_path: Path
) -> None:
    data = made_up(task, tmp_path)
    right = truths(task, data)
    assert [grade(task, data, answer_of(target, right), split) for split in SPLITS] == pytest.approx([perfect] * 2)
    half = list(right)
    for place in grader_of(task).division(*data.values(), 4).places("validation"):
        half[place] = "9999"
    assert grade(task, data, answer_of(target, half), "hidden") == pytest.approx(perfect)
    assert grade(task, data, answer_of(target, half), "validation") != pytest.approx(perfect, abs=0.1)


@pytest.mark.parametrize(("task", "baseline"), [("titanic", 0.6), ("fashion_mnist", 0.1)])
def test_the_sample_scores_the_share_of_the_class_it_names(task: str, baseline: float, tmp_path: Path) -> None:
    data = made_up(task, tmp_path)
    sample = grader_of(task).files(data, 4)["sample_submission.csv"]
    assert [grade(task, data, sample, split) for split in SPLITS] == pytest.approx([baseline] * 2)


@pytest.mark.parametrize("task", ["titanic", "diamonds"])
def test_nothing_that_is_shown_holds_a_label_to_predict_or_names_a_passenger(task: str, tmp_path: Path) -> None:
    files = grader_of(task).files(made_up(task, tmp_path), 4)
    train, test = (list(csv.reader(io.StringIO(files[name].decode()))) for name in ("train.csv", "test.csv"))
    assert set(files) == {"train.csv", "test.csv", "sample_submission.csv"}
    assert train[0][-1] not in test[0]
    assert test[0] == ["id", *train[0][:-1]]
    assert not {tuple(row[:-1]) for row in train[1:]} & {tuple(row[1:]) for row in test[1:]}
    assert b"Doe" not in files["train.csv"] + files["test.csv"]


def test_another_problem_is_another_division(tmp_path: Path) -> None:
    data = made_up("titanic", tmp_path)
    files = grader_of("titanic").files
    assert files(data, 1) == files(data, 1) != files(data, 2)


@pytest.mark.parametrize("price", ["0", "-5", "1e-320", "1e300"])
def test_prices_that_nobody_asks_are_unfit_and_never_a_failure(price: str, tmp_path: Path) -> None:
    data = made_up("diamonds", tmp_path)
    with pytest.raises(grader_of("diamonds").Unfit, match="price"):
        grade("diamonds", data, answer_of("price", [price] * 1000), "hidden")
