from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.launch import budget
from operant.launch.budget import Budget, library_environment, share, usable_cores


@pytest.mark.parametrize(
    ("sessions", "threads", "cores", "expected"),
    [
        (4, None, 2, Budget(workers=2, threads=1)),
        (4, None, 4, Budget(workers=4, threads=1)),
        (4, None, 8, Budget(workers=4, threads=1)),
        (1, None, 64, Budget(workers=1, threads=1)),
        (4, 2, 8, Budget(workers=4, threads=2)),
        (8, 2, 8, Budget(workers=4, threads=2)),
        (4, 16, 8, Budget(workers=1, threads=16)),
    ],
)
def test_cores_are_shared(sessions: int, threads: int | None, cores: int, expected: Budget) -> None:
    assert share(sessions, threads, cores) == expected


def test_a_session_of_several_processes_takes_a_core_for_each() -> None:
    assert share(4, None, 8, processes=4) == Budget(workers=2, threads=1)
    assert share(4, 2, 8, processes=8) == Budget(workers=1, threads=2)


def test_usable_cores_are_at_most_those_of_the_affinity() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "cores"), [("150000 100000", 2), ("max 100000", None), ("50000 100000", 1), ("", None)]
)
def test_container_quota_rounds_up_to_whole_cores(tmp_path: Path, text: str, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert budget._container_quota(tmp_path / "cpu.max") == cores


def test_no_control_group_means_no_quota(tmp_path: Path) -> None:
    assert budget._container_quota(tmp_path / "absent") is None


def test_every_numerical_library_is_told() -> None:
    told = library_environment(3)
    assert {told[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} == {"3"}


def test_memory_stays_in_the_process_unless_a_user_has_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIMALLOC_PURGE_DELAY", raising=False)
    assert library_environment(1)["MIMALLOC_PURGE_DELAY"] == "-1"
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "10")
    assert library_environment(1)["MIMALLOC_PURGE_DELAY"] == "10"
