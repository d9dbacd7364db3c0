"""SLM-Lab 5.3's published table: the budgets to keep and the figures to meet.

The figures are `total_reward_ma`: training returns, exploration on, averaged over the last 100 log
rows (so over the last 100 x log_frequency frames) and over 4 sessions; no spread was published.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.published_atari import GAMES


@dataclass(frozen=True)
class Problem:
    """One row of the table: an environment, its budget, and a score for each algorithm that was run."""

    env: str
    budget: int | dict[str, int]
    log_frequency: int
    scores: dict[str, float]

    def frames(self, column: str) -> int:
        """The frames that an algorithm was given."""
        return self.budget if isinstance(self.budget, int) else self.budget[column]

    @property
    def window(self) -> int:
        """Frames at the end of training that a published figure averages over."""
        return 100 * self.log_frequency


CLASSIC = (
    Problem(
        "CartPole-v1",
        200_000,
        500,
        {
            "REINFORCE": 483.31,
            "SARSA": 430.95,
            "DQN": 239.94,
            "DDQN+PER": 451.51,
            "A2C": 496.68,
            "PPO": 498.94,
            "SAC": 406.09,
            "CrossQ": 334.59,
        },
    ),
    Problem(
        "Acrobot-v1",
        300_000,
        500,
        {"DQN": -94.17, "DDQN+PER": -83.92, "A2C": -83.99, "PPO": -81.28, "SAC": -92.60, "CrossQ": -103.13},
    ),
    Problem("Pendulum-v1", 300_000, 500, {"A2C": -820.74, "PPO": -174.87, "SAC": -150.97, "CrossQ": -145.66}),
)
BOX2D = (
    Problem(
        "LunarLander-v3",
        300_000,
        1000,
        {"DQN": 195.21, "DDQN+PER": 265.90, "A2C": 27.38, "PPO": 183.30, "SAC": 106.17, "CrossQ": 139.21},
    ),
    Problem(
        "LunarLanderContinuous-v3",
        300_000,
        1000,
        {"A2C": -76.81, "PPO": 132.58, "SAC": 125.00, "CrossQ": 268.91},
    ),
)
M = 1_000_000


def _mujoco(name: str, **cells: tuple[int, float]) -> Problem:
    """A MuJoCo row: for each algorithm its budget in millions of frames and its score."""
    return Problem(
        f"{name}-v5",
        {column: millions * M for column, (millions, _) in cells.items()},
        10_000,
        {column: score for column, (_, score) in cells.items()},
    )


MUJOCO = (
    _mujoco("Ant", PPO=(10, 2138.28), SAC=(2, 4942.91), CrossQ=(3, 4517.0)),
    _mujoco("HalfCheetah", PPO=(10, 6240.68), SAC=(4, 9815.16), CrossQ=(4, 8616.52)),
    _mujoco("Hopper", PPO=(4, 1653.74), SAC=(3, 1416.52), CrossQ=(3, 1168.53)),
    _mujoco("Humanoid", PPO=(10, 2661.26), SAC=(1, 1989.65), CrossQ=(2, 1755.29)),
    _mujoco("HumanoidStandup", PPO=(4, 150104.59), SAC=(1, 137357.0), CrossQ=(2, 150912.66)),
    _mujoco("InvertedDoublePendulum", PPO=(10, 8383.76), SAC=(2, 9032.67), CrossQ=(2, 8027.38)),
    _mujoco("InvertedPendulum", PPO=(4, 949.94), SAC=(2, 928.43), CrossQ=(7, 877.83)),
    _mujoco("Pusher", PPO=(4, -49.59), SAC=(1, -43.0), CrossQ=(2, -37.08)),
    _mujoco("Reacher", PPO=(4, -5.03), SAC=(1, -6.31), CrossQ=(2, -5.65)),
    _mujoco("Swimmer", PPO=(4, 282.44), SAC=(2, 301.34), CrossQ=(3, 221.12)),
    _mujoco("Walker2d", PPO=(10, 4378.62), SAC=(3, 3123.66), CrossQ=(7, 4389.62)),
)
ATARI = tuple(
    Problem(
        f"ALE/{game}-v5", {"PPO": 10 * M, "SAC": 2 * M, "A2C": 10 * M}, 10_000, {"PPO": ppo, "SAC": sac, "A2C": a2c}
    )
    for game, (ppo, _, sac, a2c) in GAMES.items()
)
