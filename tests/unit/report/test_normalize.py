"""References against the tables they come from."""

from __future__ import annotations

import pytest

from operant.benchmark.load import load_suite
from operant.report.normalize import Reference, normalized, reference_of
from operant.report.reference_scores import CONTROL
from operant.spec.load import load


def reference(env: str, played: float | None = None) -> Reference:
    """That of an environment which has one."""
    found = reference_of(env, played)
    assert found is not None
    return found


def test_references_are_the_best_published_figures() -> None:
    best: dict[str, tuple[float, str]] = {}
    for suite in ("classic", "box2d", "mujoco"):
        for cell in load_suite(suite).cells:
            env = load(cell.spec).spec.env.name
            assert cell.published is not None
            best[env] = max(best.get(env, (-1e9, "")), (cell.published, cell.column))
    assert {env: CONTROL[env][1:] for env in best} == best


def test_a_run_is_measured_from_its_own_random_play() -> None:
    found = reference("CartPole-v1", 20.0)
    assert (found.random, found.reference) == (20.0, 498.94)
    assert normalized([20.0, 498.94, 259.47], found).tolist() == pytest.approx([0.0, 1.0, 0.5])
    assert reference("CartPole-v1").random == 22.15


def test_games_are_measured_by_a_human_player() -> None:
    assert reference("ALE/Pong-v5").reference == 14.6
    assert reference_of("ALE/Unknown-v5") is None
    assert reference_of("my:Env-v0") is None
