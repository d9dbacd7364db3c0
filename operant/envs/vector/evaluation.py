"""Evaluation apart from training: own environments, fixed seeds, no exploration unless asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from operant.envs.vector.actions import uniform_action
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.run.seeding import Seeds

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

# Actions of observations, action masks (None where there are none), and which episodes just begin.
Act = Callable[[np.ndarray, np.ndarray | None, np.ndarray | None], np.ndarray]

MOST_TOGETHER = 16
RANDOM_EPISODES = 100
RANDOM_FRAMES = 20_000
HEAVY_FRAMES = 3000  # where a step costs much more than a learner's own arithmetic


def play(env: EnvSpec, act: Act, episodes: int, first_seed: int) -> Iterator[Ended]:
    """One episode for each of the seeds first_seed, first_seed + 1, ...

    Which environment plays which seed is fixed, so the result does not depend on who ends first. One that has played
    its last waits, as it ended, for the others.
    """
    together = min(episodes, MOST_TOGETHER)
    last_seed = first_seed + episodes - 1

    def seed_of(index: int, episode: int) -> int | None:
        seed = first_seed + index + episode * together
        return seed if seed <= last_seed else None

    vector = AutoresetVectorEnv(env, together, seed_of, brief=True)
    playing = np.ones(together, bool)
    try:
        while playing.any():
            for over in vector.step(act(vector.obs, vector.mask, vector.begun), playing).ended:
                playing[over.index] = over.seed + together <= last_seed
                yield over
    finally:
        vector.close()


def random_return(env: EnvSpec) -> float:
    """Mean return of uniformly random play: the zero of the strength metrics."""
    seeds = Seeds(0)
    rng = seeds.rng("random-play")
    vector = AutoresetVectorEnv(env, 1, lambda i, k: seeds.integer("random-play", i, k), brief=True)
    scores: list[float] = []
    frames, enough = 0, HEAVY_FRAMES if vector.env.prefetches_resets else RANDOM_FRAMES
    while len(scores) < RANDOM_EPISODES and (frames < enough or not scores):
        scores += [over.score for over in vector.step(random_action(vector, rng)).ended]
        frames += 1
    vector.close()
    return float(np.mean(scores))


def random_action(vector: AutoresetVectorEnv, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random action of every environment, among the legal ones."""
    if not vector.actions.discrete:
        return rng.uniform(-1, 1, (vector.num, vector.actions.size))
    if vector.mask is not None:
        return uniform_action(rng.random(vector.num), vector.actions.size, vector.mask)
    return rng.integers(vector.actions.size, size=vector.num)
