"""Where the data of a checkout's tasks may lie, what an agent sees of it, and what is said when it is not there."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from operant.envs.research.mlgym import survey
from operant.envs.research.mlgym.datasets import Found, Lacking, read_dataset
from operant.envs.research.mlgym.layouts import NO_TRAIN, without_labels
from operant.envs.research.mlgym.survey import surveyed, task_files
from tests.unit.envs.research.mlgym_checkout import FILES, begun, named, write_checkout

HUB_SHEET = """
id: farAway
name: Far
description: Label the rows.
task_entrypoint: CSVSubmissionTasks
dataset_configs: [datasets/far.yaml]
starter_code: [data/far/score.py]
baseline_scores: [{accuracy: 0.5}]
evaluation_paths: [score.py]
training_timeout: 20
"""
HUB_SCORE = """
import argparse, json
def load_dataset(name, split):
    return [json.loads(line) for line in open(f"{name}/{split}.jsonl")]
asks = argparse.ArgumentParser()
asks.add_argument("--submission_file")
said = open(asks.parse_args().submission_file).read().split()
truth = [str(row["label"]) for row in load_dataset("hub/far", split="test")]
print(json.dumps({"accuracy": sum(a == b for a, b in zip(said, truth)) / len(truth)}))
"""
ROWS = "".join(json.dumps({"text": f"row {place}", "label": place % 2}) + "\n" for place in range(4))


@pytest.fixture
def far(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(checkout / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("OPERANT_DATA", raising=False)
    (checkout / "configs/tasks/far.yaml").write_text(HUB_SHEET)
    (checkout / "data/far").mkdir()
    (checkout / "data/far/score.py").write_text(HUB_SCORE)
    return checkout


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(ROWS)
    return folder


@pytest.mark.parametrize("place", ["hf/hub/datasets--hub--far/snapshots/abc", "mine/hub/far", "mine/Far"])
def test_data_of_the_hub_is_read_from_its_cache_or_a_named_folder_without_the_labels(far: Path, place: str) -> None:
    put(far / place)
    task = named(far, "far", **({"data": str(far / "mine")} if place.startswith("mine") else {}))
    rollout = begun(task)
    seen = rollout.hear("bash cat hub/far/test.jsonl hub/far/train.jsonl").messages[0].text
    assert seen.count('"label": 1') == 2, "those of the rows to learn from"
    rollout.hear("write submission.csv 0 1 0 1")
    assert rollout.hear("validate").score == 1.0
    rollout.close()


def test_a_dataset_is_read_on_its_own_and_what_to_put_where_is_said(far: Path) -> None:
    sheet, found = read_dataset(str(far / "configs/datasets/far.yaml"))
    assert sheet.name == "far"
    assert isinstance(found, Lacking)
    assert "hf download --repo-type dataset hub/far, or --data FOLDER" in found.cause
    sheet, found = read_dataset(str(far / "configs/datasets/numbers.yaml"))
    assert isinstance(found, Found)
    assert found.source == "data/parity/rows"
    assert found.read()["train.csv"] == FILES["data/parity/rows/train.csv"].encode()
    rows = list(surveyed(task_files(str(far / "configs/datasets")), None))
    assert [(row.file, row.imported, row.runs) for row in rows] == [
        ("far.yaml", True, False),
        ("numbers.yaml", True, True),
    ]


def test_data_that_a_helper_makes_is_made_in_a_sandbox_and_kept(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(far / "cache"))
    rows = far / "data/parity/rows"
    rows.rename(far / "data/parity/_helpers")
    helper = (
        "import shutil\nfor name in ('test', 'train', 'ground_truth'):\n    shutil.copy(f'{name}.csv', '../rows')\n"
    )
    (far / "data/parity/_helpers/split.py").write_text(helper)
    rollout = begun(named(far, "parity"))
    assert "ground_truth" not in rollout.hear("bash ls data").messages[0].text
    rollout.hear("write submission.csv 1 0 1 0 1 0 1 0")
    assert rollout.hear("validate").score == 1.0
    rollout.close()
    assert len(list((far / "cache/operant/mlgym").iterdir())) == 1


def test_labels_are_taken_out_of_the_rows_that_are_asked_alone() -> None:
    files = {"test.csv": b"id,label\n7,1\n", "train.csv": b"id,label\n8,1\n", "test.jsonl": b'{"label": 3, "x": 1}\n'}
    assert without_labels(files, ("test", "train")) == {
        "test.csv": b"id,label\n7,0\n",
        "train.csv": b"id,label\n8,1\n",
        "test.jsonl": b'{"label": 0, "x": 1}\n',
    }


def test_a_copy_of_pictures_in_their_first_layout_becomes_tables(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("XDG_CACHE_HOME", str(far / "cache"))
    folder = far / "mine/far"
    folder.mkdir(parents=True)
    labels = bytes(place % 10 for place in range(20))
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + bytes(range(4)) * 20))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + labels))
    _, found = read_dataset(str(far / "configs/datasets/far.yaml"), str(far / "mine"))
    assert isinstance(found, Found)
    assert found.mark == NO_TRAIN
    files = found.read()
    assert sorted(files) == ["data/test.parquet", "data/train.parquet"]
    test = tables.read_table(io.BytesIO(files["data/test.parquet"])).to_pylist()
    assert [row["label"] for row in test] == [6, 7, 8, 9]
    assert test[0]["image"]["bytes"].startswith(b"\x89PNG")
    shown = tables.read_table(io.BytesIO(without_labels(files, ("test",))["data/test.parquet"])).to_pylist()
    assert [row["label"] for row in shown] == [0, 0, 0, 0]


def test_a_copy_of_all_passengers_is_divided_into_what_the_task_reads(far: Path) -> None:
    folder = far / "mine/numbers"
    folder.mkdir(parents=True)
    people = "".join(f"{place},{place % 2},name\n" for place in range(1, 11))
    (folder / "titanic.csv").write_text(f"PassengerId,Survived,Name\n{people}")
    (far / "data/parity/rows").rename(far / "gone")
    _, found = read_dataset(str(far / "configs/datasets/numbers.yaml"), str(far / "mine"))
    assert isinstance(found, Found)
    assert "every fifth row is asked" in found.mark
    files = found.read()
    assert files["ground_truth.csv"] == b"PassengerId,Survived\n1,1\n6,0\n"
    assert files["test.csv"].startswith(b"PassengerId,Name\n1,name\n")
    assert b"6,0" not in files["train.csv"]


FAILING = {
    "sleepy": ("import time\ntime.sleep(60)\n", "its baseline program: ended: its time was over after"),
    "broken": ("raise TypeError('no such word')\n", "its baseline program: exit 1: TypeError: no such word"),
}


def test_a_baseline_that_fails_or_takes_too_long_stops_no_other_and_says_what_ended_it(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path)
    sheet = (checkout / "configs/tasks/model.yaml").read_text()
    for name, (program, _) in FAILING.items():
        (checkout / f"configs/tasks/{name}.yaml").write_text(sheet.replace("src/train.py", f"src/{name}.py"))
        (checkout / f"data/model/src/{name}.py").write_text(program)
    files = [checkout / f"configs/tasks/{name}.yaml" for name in (*FAILING, "model")]
    told: list[str] = []
    *failed, good = surveyed(files, None, seconds=3, tell=told.append)
    assert [row.baseline for row in failed] == [None, None]
    for row, (_, why) in zip(failed, FAILING.values(), strict=True):
        assert row.note.startswith(why)
    assert (good.baseline, good.note) == (3.0, "")
    assert told[0] == "1 of 3  sleepy.yaml: its baseline, at most 3 s for each program"
    assert told[-1].startswith("3 of 3  model.yaml: Reward Mean 3 after ")


def test_a_baseline_that_breaks_what_runs_it_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(survey, "play_script", broken)
    files = [write_checkout(tmp_path) / f"configs/tasks/{name}.yaml" for name in ("model", "coins")]
    rows = list(surveyed(files, None, seconds=3))
    assert [row.note for row in rows] == ["it failed: RuntimeError: out of luck"] * 2
