"""A small lab, ready to play and learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.rollouts.types import Group
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

TINY = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 48}, "optimizer": {"lr": 1e-3}}


def spec_of(algorithm: dict[str, Any] | None = None, **model: Any) -> Spec:
    """GRPO on copying two letters, with changes."""
    text = {"arguments": {"style": "bare", "letters": 2}, "max_tokens": 4}
    settings = {"name": "grpo", "group_size": 4, "batch_size": 16, **(algorithm or {})}
    agent = {"algorithm": settings, "model": {**TINY, **model}}
    return Spec.model_validate({"env": {"name": "copy", "max_frame": 1000, "text": text}, "agent": agent})


def graded(groups: list[Group]) -> list[Group]:
    """The groups with other rewards: answers of every group but the last are worth 0, 1, 0, 1, .."""
    changed = [
        replace(group, answers=tuple(replace(each, reward=float(at % 2)) for at, each in enumerate(group.answers)))
        for group in groups[:-1]
    ]
    return [*changed, groups[-1]]


@pytest.fixture
def context() -> Iterator[TrainingContext]:
    """Everything that a session works with."""
    with build_context(spec_of(), Seeds(3)) as made:
        yield made
