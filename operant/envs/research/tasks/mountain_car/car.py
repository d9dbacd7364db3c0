"""A car too weak for its hill, after Moore (1990) in the form of Sutton and Barto: left, coast or right, 0 to 2."""

from __future__ import annotations

import numpy as np

LEFT_END, RIGHT_END, GOAL, FASTEST = -1.2, 0.6, 0.5, 0.07
STARTS = (-0.6, -0.4)
MOST_STEPS = 200
FORCE, GRAVITY = 0.001, 0.0025


def moved(position: np.ndarray, velocity: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the cars are a step later, and how fast; the wall at the left end stops them."""
    velocity = velocity + (action - 1) * FORCE - GRAVITY * np.cos(3 * position)
    velocity = velocity.clip(-FASTEST, FASTEST)
    position = (position + velocity).clip(LEFT_END, RIGHT_END)
    return position, np.where((position == LEFT_END) & (velocity < 0), 0.0, velocity)


def chosen(table: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """The actions of a table whose rows are bands of velocity and whose columns are bands of position, both rising."""
    rows, columns = table.shape
    row = ((velocity + FASTEST) / (2 * FASTEST) * rows).astype(int).clip(0, rows - 1)
    column = ((position - LEFT_END) / (RIGHT_END - LEFT_END) * columns).astype(int).clip(0, columns - 1)
    return table[row, column]


def mean_return(table: np.ndarray, cars: int, seed: int) -> float:
    """Minus the steps to the goal, at most 200, as a mean over cars that start by chance and at rest."""
    position = np.random.default_rng(seed).uniform(*STARTS, cars)
    velocity = np.zeros(cars)
    steps = 0
    for _ in range(MOST_STEPS):
        steps += len(position)
        position, velocity = moved(position, velocity, chosen(table, position, velocity))
        on_the_way = position < GOAL
        position, velocity = position[on_the_way], velocity[on_the_way]
    return -steps / cars
