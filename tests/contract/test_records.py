"""What every run writes: rows, episodes, checkpoints; the same for one seed, different for two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.engines import engine_of
from operant.run.checkpoint import list_checkpoints, verify
from operant.run.layout import ANCHORS_FILE, EPISODES_FILE, METRICS_FILE
from operant.run.records import Records
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, differing, finish

WEIGHTS = ("policy.safetensors", "model.safetensors")


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_same_seed_gives_the_same_bytes(whole: Run, tmp_path: Path):
    again = create(tmp_path / "again", Spec.model_validate(whole.spec))
    finish(again)
    assert differing(again, whole) is None


def test_another_seed_takes_another_course(whole: Run, tmp_path: Path):
    mine, theirs = (early_weights(tmp_path / str(seed), whole, seed) for seed in (7, 8))
    file = next(name for name in WEIGHTS if name in mine)
    assert theirs[file] != mine[file]


def early_weights(path: Path, whole: Run, seed: int) -> dict[str, str]:
    """The hashes of the weights of a seed after the first part of a case."""
    run = create(path, Spec.model_validate(whole.spec), seed=seed)
    finish(run, "--until", "1500")
    return Records.of(run).newest.files


def test_rows_count_up_and_carry_the_shared_names(whole: Run):
    table = rows(whole.path / METRICS_FILE)
    frames = [row["frames"] for row in table]
    assert frames == sorted(frames)
    assert frames[-1] >= whole.max_frame
    logged = [row for row in table if "train/return" in row]
    assert len(logged) >= whole.max_frame // whole.spec["meta"]["log_frequency"] * 0.9
    evaluated = [row for row in table if "eval/score" in row and row["frames"] > 0]
    assert len(evaluated) == whole.max_frame // whole.spec["meta"]["eval_frequency"]
    final = [row for row in table if "final/score" in row]
    assert len(final) == 1
    assert final[0]["final/episodes"] == whole.spec["meta"]["final_episodes"]
    assert all({"frames", "updates", "episodes", "seconds"} <= row.keys() for row in table)


def test_episodes_are_recorded_by_split(whole: Run):
    table = rows(whole.path / EPISODES_FILE)
    by_split = {split: [row for row in table if row["split"] == split] for split in ("train", "eval", "final")}
    assert by_split["train"]
    assert len(by_split["final"]) == whole.spec["meta"]["final_episodes"]
    assert len({row["seed"] for row in by_split["final"]}) == whole.spec["meta"]["final_episodes"]
    assert all(row["ended"] in ("terminated", "truncated") for row in table)
    final = next(row for row in rows(whole.path / METRICS_FILE) if "final/score" in row)
    scores = [row["score"] for row in by_split["final"]]
    assert final["final/score"] == pytest.approx(sum(scores) / len(scores))


def test_checkpoints_verify_and_are_pruned(whole: Run):
    found = list_checkpoints(whole.checkpoints)
    assert 1 <= len(found) <= whole.spec["meta"]["keep_checkpoints"] + 1
    assert [verify(checkpoint.path).at for checkpoint in found] == [checkpoint.at for checkpoint in found]
    anchors = json.loads((whole.path / ANCHORS_FILE).read_text())
    assert anchors.get("random", anchors.get("start")) is not None


def test_evaluating_the_final_checkpoint_gives_the_recorded_score(whole: Run):
    spec = Spec.model_validate(whole.spec)
    newest = list_checkpoints(whole.checkpoints)[-1]
    episodes = list(engine_of(spec).evaluate(whole, newest, whole.spec["meta"]["final_episodes"], spec.meta.eval_seed))
    final = next(row for row in rows(whole.path / METRICS_FILE) if "final/score" in row)
    scores = [episode.score for episode in episodes]
    assert sum(scores) / len(scores) == pytest.approx(final["final/score"])


def test_sampled_play_repeats_with_its_seed(whole: Run):
    spec = Spec.model_validate(whole.spec)
    newest = list_checkpoints(whole.checkpoints)[-1]
    first, second = ([e.score for e in engine_of(spec).evaluate(whole, newest, 6, 50, greedy=False)] for _ in range(2))
    assert first == second
