from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from operant.run import checkpoint
from operant.run.checkpoint import CorruptCheckpoint, best, list_checkpoints, newest_good, prune, publish, verify
from operant.run.progress import Progress


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def write(content: bytes) -> Callable[[Path], None]:
    def write_files(folder: Path) -> None:
        (folder / "weights.bin").write_bytes(content)
        (folder / "nested").mkdir()
        (folder / "nested" / "replay.bin").write_bytes(content[::-1])

    return write_files


def publish_many(folder: Path, *scores: float | None) -> None:
    for number, score in enumerate(scores, start=1):
        publish(folder, Progress(frames=10 * number), write(b"%d" % number), score)


def frames(folder: Path) -> list[int]:
    return [found.at.frames for found in list_checkpoints(folder)]


def test_a_published_checkpoint_verifies_and_tells_all(folder: Path):
    at = Progress(frames=20480, updates=10, seconds=1.5)
    made = publish(folder, at, write(b"abc"), score=3.5, offsets={"metrics.jsonl": 120})
    assert made.path == folder / "000000020480"
    assert made == verify(made.path)
    assert (made.at, made.score, made.offsets) == (at, 3.5, {"metrics.jsonl": 120})
    assert sorted(made.files) == ["nested/replay.bin", "weights.bin"]
    assert [entry.name for entry in folder.iterdir()] == ["000000020480"]


def test_a_failed_write_leaves_the_old_and_nothing_new(folder: Path):
    publish_many(folder, 1.0)

    def fail(folder: Path) -> None:
        (folder / "half.bin").write_bytes(b"half")
        raise RuntimeError("the engine broke")

    with pytest.raises(RuntimeError, match="the engine broke"):
        publish(folder, Progress(frames=20), fail)
    assert [entry.name for entry in folder.iterdir()] == ["000000000010"]


def test_the_manifest_name_is_taken(folder: Path):
    with pytest.raises(ValueError, match=r"manifest\.json"):
        publish(folder, Progress(frames=1), lambda path: path.joinpath("manifest.json").write_text("{}"))
    assert list_checkpoints(folder) == []


def flip_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit_offset(path: Path) -> None:
    manifest = json.loads(path.read_text())
    manifest["at"]["frames"] += 1
    path.write_text(json.dumps(manifest))


DAMAGES = [
    ("weights.bin", flip_byte, "differs"),
    ("nested/replay.bin", os.unlink, "missing"),
    ("weights.bin", lambda path: os.truncate(path, 0), "differs"),
    ("manifest.json", lambda path: os.truncate(path, 40), "cannot be read"),
    ("manifest.json", os.unlink, "missing"),
    ("manifest.json", edit_offset, "changed"),
    ("manifest.json", lambda path: path.write_text("[]"), "cannot be read"),
    ("manifest.json", lambda path: path.write_bytes(b"\xff\x00"), "cannot be read"),
]


@pytest.mark.parametrize(("name", "damage", "cause"), DAMAGES)
def test_damage_is_found_named_and_passed_over(folder: Path, name: str, damage: Callable[[Path], None], cause: str):
    publish_many(folder, 1.0, 2.0)
    broken = folder / "000000000020" / name
    damage(broken)
    with pytest.raises(CorruptCheckpoint, match=cause) as caught:
        verify(folder / "000000000020")
    assert caught.value.place == str(broken)
    assert caught.value.remedy is not None
    good, problems = newest_good(folder)
    assert good is not None
    assert good.at.frames == 10
    assert len(problems) == 1
    assert str(broken) in problems[0]
    assert (folder / "000000000020").exists(), "readers change nothing"


def test_no_good_checkpoint_is_no_checkpoint(folder: Path):
    assert newest_good(folder) == (None, [])
    publish_many(folder, 1.0, 2.0)
    for path in folder.glob("*/weights.bin"):
        flip_byte(path)
    good, problems = newest_good(folder)
    assert good is None
    assert len(problems) == 2


def test_listing_reads_manifests_only(folder: Path):
    publish_many(folder, 1.0, 2.0)
    flip_byte(folder / "000000000010" / "weights.bin")
    assert frames(folder) == [10, 20]


def test_the_best_has_the_highest_score_and_the_later_of_equals(folder: Path):
    assert best(folder) is None
    publish_many(folder, None)
    assert best(folder) is None
    publish_many(folder, -5.0, -1.0, -1.0, float("nan"), None)
    found = best(folder)
    assert found is not None
    assert found.at.frames == 30


def test_pruning_keeps_the_newest_and_the_best(folder: Path):
    publish_many(folder, 1.0, 9.0, 2.0, 3.0, 4.0)
    prune(folder, keep=2)
    assert frames(folder) == [20, 40, 50]
    assert sorted(entry.name for entry in folder.iterdir()) == ["000000000020", "000000000040", "000000000050"]
    prune(folder, keep=9)
    assert frames(folder) == [20, 40, 50]


def test_links_point_at_the_newest_and_the_best(folder: Path):
    publish_many(folder, 9.0, 2.0)
    checkpoint.link_newest_and_best(folder)
    assert os.readlink(folder / "latest") == "000000000020"
    assert os.readlink(folder / "best") == "000000000010"
    assert frames(folder) == [10, 20]


def test_saving_the_same_frames_again_replaces(folder: Path):
    publish(folder, Progress(frames=10), write(b"old"), score=1.0)
    again = publish(folder, Progress(frames=10), write(b"new"), score=2.0)
    assert verify(again.path).score == 2.0
    assert (again.path / "weights.bin").read_bytes() == b"new"
    assert [entry.name for entry in folder.iterdir()] == ["000000000010"]


def test_a_replacement_cut_short_brings_the_old_one_back(folder: Path):
    publish_many(folder, 1.0)
    (folder / "000000000010").rename(folder / ".old-000000000010")
    checkpoint.remove_leftovers(folder)
    assert frames(folder) == [10]


def test_leftovers_of_killed_saves_are_cleared(folder: Path):
    publish_many(folder, 1.0)
    (folder / ".tmp-000000000020").mkdir()
    (folder / ".tmp-000000000020" / "half.bin").write_bytes(b"half")
    (folder / ".old-000000000010").mkdir()
    (folder / ".tmp-latest").symlink_to("000000000010")
    checkpoint.remove_leftovers(folder)
    assert [entry.name for entry in folder.iterdir()] == ["000000000010"]
    assert verify(folder / "000000000010").score == 1.0


def test_corrupt_checkpoints_are_kept_under_names_of_their_own(folder: Path):
    publish_many(folder, 1.0)
    first = checkpoint.set_aside(folder / "000000000010")
    publish_many(folder, 1.0)
    second = checkpoint.set_aside(folder / "000000000010")
    assert (first.name, second.name) == ("000000000010.corrupt", "000000000010.corrupt-2")
    assert frames(folder) == []


def test_a_child_adopts_a_verified_copy(folder: Path, tmp_path: Path):
    source = publish(folder, Progress(frames=10, seconds=4.0), write(b"abc"), score=3.0, offsets={"metrics.jsonl": 99})
    copy = checkpoint.adopt(source, tmp_path / "child" / "checkpoints")
    assert (copy.at, copy.score, copy.offsets, copy.files) == (source.at, None, {}, source.files)
    flip_byte(source.path / "weights.bin")
    assert verify(copy.path) == copy
    with pytest.raises(CorruptCheckpoint):
        checkpoint.adopt(source, tmp_path / "other" / "checkpoints")
