"""A toy task and what its rollouts need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.envs.research.rollout import Rollout
from operant.envs.research.workbench import ResearchTask
from operant.envs.sandbox import bubblewrap
from tests.unit.envs.research.mlgym_checkout import write_checkout

GUESS = str(Path(__file__).with_name("guess"))
RIGHT = "```write solution.py\ndef solve(n):\n    return 2 * n\n```"
HALF = "```write solution.py\ndef solve(n):\n    return 2 * n if n % 2 else 0\n```"


@pytest.fixture(autouse=True)
def _sandbox_or_skip() -> None:
    if trouble := bubblewrap.trouble():
        pytest.skip(f"no sandbox: {trouble}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write_checkout(tmp_path)


@pytest.fixture
def task() -> ResearchTask:
    return ResearchTask(GUESS)


@pytest.fixture
def rollout(task: ResearchTask) -> Iterator[Rollout]:
    begun = task.begin(task.problems("train")[7], 0)
    assert isinstance(begun, Rollout)
    yield begun
    begun.close()
