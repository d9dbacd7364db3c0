"""Environments of one session in groups that are stepped in turn.

While the host steps one group, an accelerator computes the actions of the next: so neither waits for the other. Seeds,
checkpoints and records number the environments through all groups, as if there were one.
"""

from __future__ import annotations

import numpy as np
from jax import Array

from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.envs.vector.episode_seeds import episode_seeds
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ACTIONS = "actions/"  # of environment i, in the state of a vector env


class VectorEnvGroups:
    """`count` vector envs with equal shares of a spec's environments."""

    def __init__(self, spec: Spec, seeds: Seeds, count: int) -> None:
        each, seed_of = spec.env.num_envs // count, episode_seeds(spec, seeds)
        self.num = spec.env.num_envs
        self.groups = [
            AutoresetVectorEnv(spec.env, each, lambda i, k, first=each * group: seed_of(first + i, k))
            for group in range(count)
        ]

    def state(self) -> dict[str, np.ndarray]:
        """What reproduces every environment, as a single vector env has it."""
        states = [group.state() for group in self.groups]
        merged = {name: np.concatenate([state[name] for state in states]) for name in ("episode", "obs")}
        logs = [
            state[f"{ACTIONS}{i}"] for state, group in zip(states, self.groups, strict=True) for i in range(group.num)
        ]
        return {**merged, **{f"{ACTIONS}{i}": log for i, log in enumerate(logs)}}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Return to `state`, whichever the number of groups that gave it."""
        first = 0
        for group in self.groups:
            mine = slice(first, first + group.num)
            logs = {f"{ACTIONS}{i}": state[f"{ACTIONS}{first + i}"] for i in range(group.num)}
            group.restore({"episode": state["episode"][mine], "obs": state["obs"][mine], **logs})
            first += group.num

    def shares(self, states: Array | None) -> list[Array | None]:
        """Hidden states [N, H] by group; None for each where there are none."""
        if states is None:
            return [None] * len(self.groups)
        return list(states.reshape(len(self.groups), -1, states.shape[-1]))

    def close(self) -> None:
        """Release every environment."""
        for group in self.groups:
            group.close()
