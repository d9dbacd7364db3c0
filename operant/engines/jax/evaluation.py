"""Evaluation as a compiled program: one episode for each fixed seed, with one policy or with those of all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import codec, distributions
from operant.engines.jax.episodes import EpisodeResults, FinishedEpisode, episode_at
from operant.engines.jax.learner import RANDOM, Learner, Policy
from operant.engines.jax.learners import build_learner
from operant.engines.jax.platform import prepare_jax
from operant.envs.functional.env import State as EnvState
from operant.spec.schema import Spec

MAX_BATCH = 128
RANDOM_EPISODES = 100


class EvalState(NamedTuple):
    """Episodes under evaluation [E]."""

    time: Array
    env_state: EnvState
    observation: Array
    score: Array
    length: Array
    over: Array
    terminated: Array
    facts: dict[str, Array]


def evaluate_policy(
    learner: Learner, policy: Policy, hyper: Any, seeds: Array, wanted: Array, mode: Array
) -> EpisodeResults:
    """One episode for each seed [E], to its end; those not `wanted` are not waited for."""
    env = learner.env
    # A seed's own key resets its episode, so an environment that names its games by seeds starts that very game.
    keys = jax.vmap(jax.random.key)(seeds)
    env_state, observation = jax.vmap(env.reset)(keys)
    count = len(seeds)
    start = EvalState(
        jnp.int32(1),
        env_state,
        observation,
        jnp.zeros(count),
        jnp.zeros(count, jnp.int32),
        ~wanted,
        jnp.zeros(count, bool),
        {name: jnp.zeros(count) for name in env.facts},
    )

    def step(now: EvalState) -> EvalState:
        act_keys, env_keys = (_fold_in(_fold_in(keys, now.time), part) for part in (0, 1))
        mask = jax.vmap(env.mask)(now.env_state) if env.masked else None
        action = learner.act(policy, hyper, now.observation, mask, act_keys[0], mode)
        env_state, outcome = jax.vmap(env.step)(
            now.env_state, distributions.to_env_action(env.actions, action), env_keys
        )
        going = ~now.over
        return EvalState(
            now.time + 1,
            env_state,
            outcome.observation,
            now.score + jnp.where(going, outcome.reward, 0.0),
            now.length + going,
            now.over | outcome.terminated | outcome.truncated,
            now.terminated | (going & outcome.terminated),
            {name: jnp.where(going, outcome.facts[name], old) for name, old in now.facts.items()},
        )

    end = lax.while_loop(lambda now: ~now.over.all(), step, start)
    return EpisodeResults(end.score, end.length, end.terminated, end.facts)


def _fold_in(keys: Array, number: Any) -> Array:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, number)


class Evaluator:
    """Evaluates the policies of all lanes at once, on the same seeds, in batches of one size: one compiled program."""

    def __init__(self, learner: Learner, batch: int, options: dict[str, Any]) -> None:
        self._batch = min(batch, MAX_BATCH)

        def of_lanes(policies: Policy, hyper: Any, seeds: Array, wanted: Array, mode: Array) -> EpisodeResults:
            return jax.vmap(lambda policy, numbers: evaluate_policy(learner, policy, numbers, seeds, wanted, mode))(
                policies, hyper
            )

        self._evaluate = jax.jit(of_lanes, compiler_options=options)

    def __call__(
        self, policies: Policy, hyper: Any, first_seed: int, episodes: int, mode: int
    ) -> list[list[FinishedEpisode]]:
        """For each lane, one episode for each of the seeds first_seed, first_seed + 1, ... in order.

        `hyper` are the traced hyperparameters of all lanes, stacked.
        """
        ended: list[list[FinishedEpisode]] = [[] for _ in jax.tree.leaves(hyper)[0]]
        for start in range(0, episodes, self._batch):
            seeds = np.arange(first_seed + start, first_seed + start + self._batch, dtype=np.uint32)
            wanted = np.arange(start, start + self._batch) < episodes
            found: EpisodeResults = jax.device_get(self._evaluate(policies, hyper, seeds, wanted, np.int32(mode)))
            for lane, rows in enumerate(ended):
                rows += [episode_at(found, (lane, i), int(seeds[i])) for i in np.flatnonzero(wanted)]
        return ended

    def single(
        self, policy: Policy, hyper: Any, first_seed: int, episodes: int, mode: int
    ) -> Iterator[FinishedEpisode]:
        """The same for the policy and the hyperparameters of a single lane."""
        lanes, numbers = jax.tree.map(lambda x: jnp.asarray(x)[None], (policy, hyper))
        yield from self(lanes, numbers, first_seed, episodes, mode)[0]

    def random_return(self, policies: Policy, hyper: Any) -> float:
        """Mean return of uniformly random play, whatever the policies."""
        return float(np.mean([episode.score for episode in self(policies, hyper, 0, RANDOM_EPISODES, RANDOM)[0]]))


def load_policy(spec: Spec, checkpoint: Path) -> tuple[Learner, Policy]:
    """The learner of a spec and the policy of a checkpoint, on one device; a GPU is not needed to run it."""
    device = "auto" if spec.meta.device == "cuda" else spec.meta.device
    spec = spec.model_copy(update={"meta": spec.meta.model_copy(update={"devices": 1, "device": device})})
    prepare_jax(spec)
    learner = build_learner(spec)
    weights = learner.init_params(np.random.default_rng(0))
    like = jax.eval_shape(lambda key: learner.init(key, weights, None).policy, jax.random.key(0))
    return learner, codec.read_policy(checkpoint, like)
