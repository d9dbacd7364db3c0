"""The best return that Pendulum-v1 allows, by dynamic programming over a grid of angles, speeds and torques.

    python -m benchmarks.pendulum_ceiling

Prints the mean over all starts that the environment draws, its standard deviation, and the mean over the starts of the
final evaluation's seeds. Values between grid points are interpolated, which errs by what a finer grid changes.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

from operant.envs.functional.classic import Pendulum
from operant.spec.settings.sections import MetaSpec

STEPS = 200
MOST_SPEED, MOST_TORQUE = 8.0, 2.0


class Grid:
    """Values over angle, which is periodic, and speed; read between the points by bilinear interpolation."""

    def __init__(self, angles: int, speeds: int) -> None:
        self.angles, self.speeds = angles, speeds
        self.angle = np.repeat(np.arange(angles) * 2 * np.pi / angles, speeds)
        self.speed = np.tile(np.linspace(-MOST_SPEED, MOST_SPEED, speeds), angles)

    def corners(self, angle: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The four points around each state, and their weights, [4, states]."""
        a = (angle % (2 * np.pi)) * self.angles / (2 * np.pi)
        s = (speed + MOST_SPEED) * (self.speeds - 1) / (2 * MOST_SPEED)
        a0, s0 = np.floor(a).astype(int), np.minimum(np.floor(s).astype(int), self.speeds - 2)
        da, ds = a - a0, s - s0
        points = [(a0 + i) % self.angles * self.speeds + s0 + j for i in (0, 1) for j in (0, 1)]
        weights = [(da if i else 1 - da) * (ds if j else 1 - ds) for i in (0, 1) for j in (0, 1)]
        return np.stack(points), np.stack(weights)

    def read(self, values: np.ndarray, angle: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Values of any states."""
        points, weights = self.corners(angle, speed)
        return np.sum(values[points] * weights, axis=0)


def best_values(grid: Grid, torques: int) -> np.ndarray:
    """What the best play of `STEPS` steps earns from every point of the grid."""
    moves = []
    for torque in np.linspace(-MOST_TORQUE, MOST_TORQUE, torques):
        (angle, speed), reward, _ = Pendulum().move(
            (jnp.asarray(grid.angle), jnp.asarray(grid.speed)), jnp.array([torque])
        )
        moves.append((np.asarray(reward), *grid.corners(np.asarray(angle), np.asarray(speed))))
    values = np.zeros(len(grid.angle))
    for _ in range(STEPS):
        nexts = (reward + np.einsum("cn,cn->n", values[points], weights) for reward, points, weights in moves)
        values = np.maximum.reduce(list(nexts))
    return values


def starts(seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Angle and speed at which each seed begins."""
    env = gym.make("Pendulum-v1")
    found = []
    for seed in seeds:
        env.reset(seed=seed)
        found.append(getattr(env.unwrapped, "state"))  # noqa: B009
    angle, speed = np.asarray(found).T
    return angle, speed


def main() -> None:
    """Solve on grids that grow, and print what each finds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, nargs="+", default=[101, 201, 401], help="angles and speeds of each grid")
    parser.add_argument("--torques", type=int, default=21)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    drawn = rng.uniform(-np.pi, np.pi, 100_000), rng.uniform(-1, 1, 100_000)
    first = MetaSpec().eval_seed
    for size in chosen.grids:
        grid = Grid(size, size)
        values = best_values(grid, chosen.torques)
        everywhere, fixed = grid.read(values, *drawn), grid.read(values, *starts(range(first, first + 100)))
        print(
            f"{size} x {size}: mean {everywhere.mean():.1f} over all starts, standard deviation {everywhere.std():.1f};"
            f" {fixed.mean():.1f} over the seeds of the final evaluation",
            flush=True,
        )


if __name__ == "__main__":
    main()
