"""Where two sessions differ is told by file and key."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path

import pytest

from operant.run.checkpoint import publish
from operant.run.progress import Progress
from operant.run.records import Records, difference

STATE = {"net": {"step": 3}}


def tensors(**values: bytes) -> bytes:
    """A safetensors file of bytes."""
    header, start = {}, 0
    for name, value in values.items():
        header[name] = {"dtype": "U8", "shape": [len(value)], "data_offsets": [start, start + len(value)]}
        start += len(value)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(values.values())


def files(weights: bytes = b"ab", **state: object) -> dict[str, bytes]:
    files = {"policy.safetensors": tensors(first=b"xy", second=weights)}
    return files | {"learner.json": json.dumps({**STATE, **state}).encode(), "notes.bin": b"1"}


FIRST, LAST = 1, 2
METRICS = [{"frames": 1, "loss": 0.5}, {"frames": 2, "loss": 0.25}]
EPISODES = [{"seed": 1, "score": 1.0, "parts": {"a": 1, "b": 2}}]
BOTH = {FIRST: files(), LAST: files()}


def records(folder: Path, metrics=METRICS, episodes=EPISODES, saved=BOTH) -> Records:
    """Records with real checkpoints, by frames."""

    def write(content: dict[str, bytes], place: Path) -> None:
        for name, text in content.items():
            (place / name).write_bytes(text)

    published = [publish(folder, Progress(frames=at), partial(write, content)) for at, content in saved.items()]
    return Records(metrics, episodes, {each.path.name: each for each in published})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": [METRICS[0], {"frames": 2, "loss": 0.125}]}, "metrics.jsonl line 2: loss: 0.25 and 0.125"),
        ({"metrics": [{"frames": 1}, METRICS[1]]}, "metrics.jsonl line 1: only one of them has loss"),
        ({"metrics": [{"loss": 0.5, "frames": 1}]}, "metrics.jsonl line 1: the order of the keys"),
        ({"metrics": METRICS[:1]}, "metrics.jsonl: 2 and 1 lines"),
        (
            {"episodes": [{"seed": 1, "score": 1.0, "parts": {"a": 1, "b": 3}}]},
            "episodes.jsonl line 1: parts.b: 2 and 3",
        ),
        ({"saved": {}}, "the newest checkpoints are 000000000002 and none"),
        (
            {"saved": {LAST: files(b"ac")}},
            "checkpoints/000000000002: policy.safetensors: second: b'ab' and b'ac'",
        ),
        (
            {"saved": {LAST: files(net={"step": 4})}},
            "checkpoints/000000000002: learner.json: net.step: 3 and 4",
        ),
        (
            {"saved": {LAST: {**files(), "notes.bin": b"2"}}},
            "checkpoints/000000000002: notes.bin",
        ),
        (
            {"saved": {LAST: {**files(), "more.json": b"2"}}},
            "checkpoints/000000000002: only one of them has more.json",
        ),
    ],
)
def test_the_first_difference(tmp_path: Path, changes: dict, words: str):
    assert difference(records(tmp_path / "whole"), records(tmp_path / "other", **changes)) == words


def test_a_checkpoint_that_only_one_still_keeps_is_no_difference(tmp_path: Path):
    assert difference(records(tmp_path / "a"), records(tmp_path / "b", saved={LAST: files()})) is None


def test_two_sessions_without_checkpoints_prove_nothing(tmp_path: Path):
    empty = records(tmp_path, saved={})
    assert difference(empty, empty) == "the newest checkpoints are none and none"
