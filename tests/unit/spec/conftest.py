"""Spec files to load, in a folder of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from operant.errors import UsageError
from operant.spec.load import load

SPEC = """\
name: demo
env:
  name: CartPole-v1
  num_envs: 4
  max_frame: 2e5
agent:
  algorithm:
    name: ppo
    gamma: 0.99
    time_horizon: 128
    minibatch_size: 128
  net:
    hidden: [64, 64]
    optimizer:
      lr: 3e-4
meta:
  max_session: 4
"""

Complain = Callable[..., str]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named as a person in that folder would name them."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def spec_text() -> str:
    return SPEC


@pytest.fixture
def complaint() -> Complain:
    """Load a text with overrides and return what the person is told; "" when nothing is wrong."""

    def complain(text: str, overrides: Sequence[str] = (), file: str = "demo.yaml", name: str | None = None) -> str:
        Path(file).write_text(text, encoding="utf-8")
        try:
            load(file, name, overrides)
        except UsageError as error:
            return str(error)
        return ""

    return complain
