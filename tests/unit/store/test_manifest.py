"""Parts of files and the manifests that name them."""

from __future__ import annotations

import json

import pytest

from operant.errors import RunError
from operant.store.manifest import PART_BYTES, SMALLEST_PART, Entry, Manifest, Part, cuts, decode


@pytest.mark.parametrize("growing", [True, False])
@pytest.mark.parametrize("size", [0, 1, SMALLEST_PART, PART_BYTES - 1, PART_BYTES, 3 * PART_BYTES + 12_345])
def test_parts_make_up_the_file(size: int, growing: bool) -> None:
    parts = cuts(size, growing)
    assert sum(parts) == size
    assert max(parts) <= PART_BYTES
    assert 0 not in parts[1:]


def test_a_growing_file_is_sent_a_few_times_at_most() -> None:
    sent, seen = 0, set()
    for size in range(0, 8_000_000, 10_000):
        start = 0
        for part in cuts(size, growing=True):
            # Of a file that only grows, the same range has the same content.
            if (start, part) not in seen:
                seen.add((start, part))
                sent += part
            start += part
    assert sent < 12 * 8_000_000  # sent whole each time it would be 400 times its size


def test_a_manifest_is_read_as_it_was_written() -> None:
    parts = (Part("a" * 64, 3), Part("b" * 64, 4))
    written = Manifest("session", {"x/y.bin": Entry(7, "c" * 64, parts), "z": Entry(1, "d" * 64, (Part("d" * 64, 1),))})
    assert decode(written.encode(), "here") == written


def test_a_changed_manifest_is_refused() -> None:
    written = Manifest("session", {"z": Entry(1, "d" * 64, (Part("d" * 64, 1),))}).encode()
    for damaged in (written[:-20], written.replace(b'"size": 1', b'"size": 2'), b"", b"[]"):
        with pytest.raises(RunError, match=r"s3://b/manifest\.json: the manifest is damaged"):
            decode(damaged, "s3://b/manifest.json")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", "a//b", "a\\b"])
def test_a_path_out_of_the_run_is_refused(path: str) -> None:
    stored = Manifest("session", {path: Entry(0, "e" * 64, (Part("e" * 64, 0),))}).encode()
    with pytest.raises(RunError, match="damaged"):
        decode(stored, "here")


def test_a_newer_format_is_told() -> None:
    content = json.loads(Manifest("session", {}).encode())
    with pytest.raises(RunError, match="newer Operant"):
        decode(json.dumps({**content, "format": 2}).encode(), "here")
