"""Whatever a spec file, an override or a flag says, the answer is a spec or a clear refusal, soon, and nothing is kept.

The default suite takes a sample; `-m slow` takes all ten thousand.
"""

from __future__ import annotations

import ctypes
import gc
import time
from pathlib import Path
from random import Random

import pytest

from operant.errors import UsageError
from operant.spec.dialects.hackmatrix import read_flags
from operant.spec.dialects.write import native_yaml
from operant.spec.load import load, load_all
from tests.unit.spec.mutations import Case, corpus, mutated

SECONDS, SECONDS_PER_MB = 5.0, 60.0
LONGEST_REPORT = 30_000


def read(case: Case, folder: Path) -> str:
    """What came of a case: a few words, or the refusal as a person sees it."""
    path = folder / f"case{case.suffix}"
    path.write_bytes(case.content)
    try:
        if not case.suffix:
            read_flags(case.content.decode("utf-8", "replace"), load("ppo_hackmatrix").spec)
        else:
            for loaded in load_all(str(path), None, case.overrides, case.lossy)[:3]:
                native_yaml([loaded], "case")
    except UsageError as refused:
        return str(refused)
    return "a spec"


def resident() -> int:
    """Bytes of memory that this process holds, less what the allocator merely keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def fuzz(count: int, seed: int, folder: Path) -> dict[str, float]:
    """Read so many cases, each under its own limits; returns what was seen."""
    texts, rng = corpus(), Random(seed)
    for _ in range(30):
        read(mutated(rng, texts), folder)
    before, slowest, accepted, largest = resident(), 0.0, 0, 0
    for number in range(count):
        case = mutated(rng, texts)
        size = len(case.content) + sum(map(len, case.overrides))
        begun = time.process_time()
        try:
            told = read(case, folder)
        except Exception as fault:
            raise AssertionError(f"case {number} of seed {seed} ended in {type(fault).__name__}: {fault}") from fault
        spent = time.process_time() - begun
        allowed = SECONDS + SECONDS_PER_MB * size / 1e6
        assert spent < allowed, f"case {number} of seed {seed}, {size:,} bytes, took {spent:.1f} s: {told[:300]}"
        assert len(told.encode()) < LONGEST_REPORT, f"case {number} of seed {seed} was told at length: {told[:300]}"
        accepted += told == "a spec"
        slowest, largest = max(slowest, spent), max(largest, size)
    return {
        "slowest": slowest,
        "accepted": accepted,
        "largest": largest,
        "grown": float(resident() - before),
    }


def test_a_sample_of_broken_specs_is_refused_or_read(tmp_path: Path) -> None:
    seen = fuzz(100, 18, tmp_path)
    assert 0 < seen["accepted"] < 100, "both answers should be among them"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_broken_specs_are_refused_or_read(seed: int, tmp_path: Path) -> None:
    seen = fuzz(1000, seed, tmp_path)
    print(seen)
    assert 0 < seen["accepted"] < 1000
    assert seen["largest"] > 100_000
    assert seen["grown"] < 64 * 2**20, "what a refused spec took is given back"
