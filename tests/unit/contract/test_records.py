"""Where two sessions differ is told by file and key."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest

from operant.contract.records import Records, difference

STATE = {"net": {"step": 3}}


def tensors(**values: bytes) -> bytes:
    """A safetensors file of bytes."""
    header, start = {}, 0
    for name, value in values.items():
        header[name] = {"dtype": "U8", "shape": [len(value)], "data_offsets": [start, start + len(value)]}
        start += len(value)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(values.values())


def checkpoint(weights: bytes = b"ab", **state: object) -> dict[str, bytes]:
    files = {"policy.safetensors": tensors(first=b"xy", second=weights)}
    return files | {"learner.json": json.dumps({**STATE, **state}).encode(), "notes.bin": b"1"}


WHOLE = Records(
    metrics=[{"frames": 1, "loss": 0.5}, {"frames": 2, "loss": 0.25}],
    episodes=[{"seed": 1, "score": 1.0, "parts": {"a": 1, "b": 2}}],
    checkpoints={"000000000001": checkpoint(), "000000000002": checkpoint()},
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": [WHOLE.metrics[0], {"frames": 2, "loss": 0.125}]}, "metrics.jsonl line 2: loss: 0.25 and 0.125"),
        ({"metrics": [{"frames": 1}, WHOLE.metrics[1]]}, "metrics.jsonl line 1: only one of them has loss"),
        ({"metrics": [{"loss": 0.5, "frames": 1}]}, "metrics.jsonl line 1: the order of the keys"),
        ({"metrics": WHOLE.metrics[:1]}, "metrics.jsonl: 2 and 1 lines"),
        (
            {"episodes": [{"seed": 1, "score": 1.0, "parts": {"a": 1, "b": 3}}]},
            "episodes.jsonl line 1: parts.b: 2 and 3",
        ),
        ({"checkpoints": {}}, "the newest checkpoints are 000000000002 and none"),
        (
            {"checkpoints": {"000000000002": checkpoint(b"ac")}},
            "checkpoints/000000000002: policy.safetensors: second: b'ab' and b'ac'",
        ),
        (
            {"checkpoints": {"000000000002": checkpoint(net={"step": 4})}},
            "checkpoints/000000000002: learner.json: net.step: 3 and 4",
        ),
        (
            {"checkpoints": {"000000000002": {**checkpoint(), "notes.bin": b"2"}}},
            "checkpoints/000000000002: notes.bin",
        ),
        (
            {"checkpoints": {"000000000002": {**checkpoint(), "more.json": b"2"}}},
            "checkpoints/000000000002: only one of them has more.json",
        ),
    ],
)
def test_the_first_difference(changes: dict, words: str):
    assert difference(WHOLE, replace(WHOLE, **changes)) == words


def test_a_checkpoint_that_only_one_still_keeps_is_no_difference():
    assert difference(WHOLE, replace(WHOLE, checkpoints={"000000000002": checkpoint()})) is None


def test_two_sessions_without_checkpoints_prove_nothing():
    empty = replace(WHOLE, checkpoints={})
    assert difference(empty, empty) == "the newest checkpoints are none and none"
