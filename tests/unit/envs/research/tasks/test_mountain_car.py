"""The car against Gymnasium's, and what counts as a table of actions."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from operant.envs.research.grading import Unfit
from operant.envs.research.tasks.mountain_car.car import chosen, mean_return, moved
from operant.envs.research.tasks.mountain_car.grader import parsed_table


def test_the_car_moves_as_gymnasiums_does() -> None:
    world = gymnasium.make("MountainCar-v0").unwrapped
    rng = np.random.default_rng(0)
    for seed in range(5):
        world.reset(seed=seed)
        position, velocity = np.array([-0.5]), np.array([0.0])
        world.state = (-0.5, 0.0)  # pyright: ignore[reportAttributeAccessIssue]
        for step in range(150):
            action = int(rng.integers(3)) if seed else 0 if step % 40 < 20 else 2
            seen, _, terminated, *_ = world.step(action)
            position, velocity = moved(position, velocity, np.array([action]))
            assert seen == pytest.approx([position[0], velocity[0]], abs=1e-6)
            assert terminated == (position[0] >= 0.5)
            if terminated:
                break


def test_rows_are_bands_of_velocity_and_columns_of_position() -> None:
    table = np.array([[0, 1], [2, 0]])
    at = np.array([-1.2, 0.6, -1.2, 0.6, -0.31, -0.29]), np.array([-0.07, -0.07, 0.07, 0.07, 0.0, 0.0])
    assert list(chosen(table, *at)) == [0, 1, 2, 0, 2, 0]


@pytest.mark.parametrize(("text", "low", "high"), [("2", -200, -200), ("0 2", -121, -118), ("1", -200, -200)])
def test_known_tables_score_what_is_known(text: str, low: float, high: float) -> None:
    assert low <= mean_return(parsed_table(text), 1000, seed=5) <= high


def test_seeds_matter_a_little() -> None:
    scores = {mean_return(parsed_table("0 2"), 1000, seed) for seed in range(5)}
    assert len(scores) > 1
    assert max(scores) - min(scores) < 1


@pytest.mark.parametrize("text", ["", "3", "0 22", "-1", "a", "0.5", "2" * 201, "2 " * 201])
def test_what_is_no_table_is_unfit(text: str) -> None:
    with pytest.raises(Unfit, match=r"policy\.txt"):
        parsed_table(text)
