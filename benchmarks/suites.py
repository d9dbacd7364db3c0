"""What each suite runs: for every filled cell of the published table, the spec that answers it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.published import ATARI, BOX2D, CLASSIC, MUJOCO, Problem
from benchmarks.published_atari import GAMES

PREFIXES = {
    "REINFORCE": "reinforce",
    "SARSA": "sarsa",
    "DQN": "dqn",
    "DDQN+PER": "ddqn_per",
    "A2C": "a2c",
    "PPO": "ppo",
    "SAC": "sac",
    "CrossQ": "crossq",
}
ENDINGS = {
    "CartPole-v1": "cartpole",
    "Acrobot-v1": "acrobot",
    "Pendulum-v1": "pendulum",
    "LunarLander-v3": "lunar",
    "LunarLanderContinuous-v3": "lunar_continuous",
}
TOLD = {
    # Made for 12,000 frames; at the published 300,000 a quarter of its updates per frame is plenty.
    "crossq_pendulum": (
        "agent.algorithm.training_frequency=8",
        "agent.memory.batch_size=128",
        "agent.memory.max_size=100000",
    ),
}


@dataclass(frozen=True)
class Cell:
    """One algorithm on one problem, trained by a built-in spec at the published budget.

    `name` is what `--cells` and the results call it, `overrides` what the spec is told beside its budget.
    """

    column: str
    problem: Problem
    spec: str
    name: str
    overrides: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        """The published budget."""
        return self.problem.frames(self.column)

    @property
    def published(self) -> float:
        """The figure to meet."""
        return self.problem.scores[self.column]


def _cells(problems: tuple[Problem, ...]) -> list[Cell]:
    cells = []
    for problem in problems:
        for column in problem.scores:
            spec = f"{PREFIXES[column]}_{_ending(problem.env)}"
            cells.append(Cell(column, problem, spec, spec, TOLD.get(spec, ())))
    return cells


def _atari(problem: Problem) -> list[Cell]:
    """The cells of one game, PPO with the lambda that the table names."""
    game = problem.env.removeprefix("ALE/").removesuffix("-v5")
    ppo = {0.95: "ppo_atari", 0.85: "ppo_atari_lam85", 0.7: "ppo_atari_lam70"}[GAMES[game][1]]
    specs = {"PPO": ppo, "SAC": "sac_atari", "A2C": "a2c_atari"}
    return [
        Cell(column, problem, spec, f"{spec}_{game.lower()}", (f"env={problem.env}",)) for column, spec in specs.items()
    ]


def _ending(env: str) -> str:
    return ENDINGS.get(env, env.removesuffix("-v5").lower())


SUITES: dict[str, list[Cell]] = {
    "classic": _cells(CLASSIC),
    "box2d": _cells(BOX2D),
    "mujoco": _cells(MUJOCO),
    "atari": [cell for problem in ATARI for cell in _atari(problem)],
}
