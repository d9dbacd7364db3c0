"""What each suite runs: for every filled cell of the published table, the spec that answers it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.published import BOX2D, CLASSIC, MUJOCO, Problem

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


@dataclass(frozen=True)
class Cell:
    """One algorithm on one problem, trained by a built-in spec at the published budget."""

    column: str
    problem: Problem
    spec: str

    @property
    def name(self) -> str:
        """What `--cells` and the results call it."""
        return self.spec

    @property
    def frames(self) -> int:
        """The published budget."""
        return self.problem.frames(self.column)

    @property
    def published(self) -> float:
        """The figure to meet."""
        return self.problem.scores[self.column]


def _cells(problems: tuple[Problem, ...]) -> list[Cell]:
    return [
        Cell(column, problem, f"{PREFIXES[column]}_{_ending(problem.env)}")
        for problem in problems
        for column in problem.scores
    ]


def _ending(env: str) -> str:
    return ENDINGS.get(env, env.removesuffix("-v5").lower())


SUITES: dict[str, list[Cell]] = {"classic": _cells(CLASSIC), "box2d": _cells(BOX2D), "mujoco": _cells(MUJOCO)}
