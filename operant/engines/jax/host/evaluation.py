"""Evaluation on environments that step on the host: the policy is a compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from operant.engines.jax.episodes import FinishedEpisode
from operant.engines.jax.learner import Learner, Policy, PolicyInput
from operant.envs.vector.evaluation import MOST_TOGETHER, play, random_return


class HostEvaluator:
    """Evaluates the policy of the one lane that such a program has; see `Evaluator`."""

    def __init__(self, learner: Learner, options: dict[str, Any]) -> None:
        self._env = learner.spec.env
        self._init_hidden = learner.init_hidden
        self._act = jax.jit(learner.act_and_hidden, compiler_options=options)

    def __call__(
        self, policies: Policy, hyper: Any, first_seed: int, episodes: int, mode: int
    ) -> list[list[FinishedEpisode]]:
        """Of the one lane, an episode for each of the seeds first_seed, first_seed + 1, ... in order."""
        policy, numbers = jax.tree.map(lambda leaf: leaf[0], (policies, hyper))
        found = self.single(policy, numbers, first_seed, episodes, mode)
        return [sorted(found, key=lambda episode: episode.seed or 0)]

    def single(
        self, policy: Policy, hyper: Any, first_seed: int, episodes: int, mode: int
    ) -> Iterator[FinishedEpisode]:
        """The same for a policy and hyperparameters without an axis of lanes, in the order in which episodes end."""
        key, steps, mode_array = jax.random.key(first_seed), iter(range(2**31)), np.int32(mode)
        hidden = self._init_hidden(min(episodes, MOST_TOGETHER))

        def act(observation: np.ndarray, mask: np.ndarray | None, begun: np.ndarray | None) -> np.ndarray:
            nonlocal hidden
            now = jax.random.fold_in(key, next(steps))
            seen = PolicyInput(observation, mask, None if hidden is None else begun, hidden)
            action, hidden = self._act(policy, hyper, seen, now, mode_array)
            return np.asarray(action)

        for over in play(self._env, act, episodes, first_seed):
            yield FinishedEpisode(over.seed, over.score, over.length, over.terminated)

    def random_return(self, policies: Policy, hyper: Any) -> float:
        """Mean return of uniformly random play."""
        del policies, hyper  # it is of no policy
        return random_return(self._env)
