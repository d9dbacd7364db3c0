"""Evaluation inside a program: one episode for each fixed seed, played to its end by one policy or by many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.fused import policies
from operant.engines.fused.learner import Learner, Policy
from operant.envs.functional import State as WorldState

MOST_TOGETHER = 128
RANDOM_EPISODES = 100


class Match(NamedTuple):
    """Episodes in play [E]."""

    time: Array
    world: WorldState
    observation: Array
    score: Array
    length: Array
    over: Array
    terminated: Array


@dataclass(frozen=True)
class Ended:
    """An episode that ended."""

    seed: int | None
    score: float
    length: int
    terminated: bool


def play(learner: Learner, policy: Policy, seeds: Array, wanted: Array, way: Array) -> tuple[Array, Array, Array]:
    """Scores, lengths and endings of one episode for each seed [E]; those not `wanted` are not waited for."""
    env = learner.env
    # A seed's own key begins its episode, so a problem that can name a game by its seed plays that very game.
    keys = jax.vmap(jax.random.key)(seeds)
    world, observation = jax.vmap(env.reset)(keys)
    count = len(seeds)
    start = Match(
        jnp.int32(1), world, observation, jnp.zeros(count), jnp.zeros(count, jnp.int32), ~wanted, jnp.zeros(count, bool)
    )

    def step(now: Match) -> Match:
        of_act, of_env = (_at(_at(keys, now.time), part) for part in (0, 1))
        mask = jax.vmap(env.mask)(now.world) if env.masked else None
        action = learner.act(policy, now.observation, mask, of_act[0], way)
        world, outcome = jax.vmap(env.step)(now.world, policies.to_env(env.actions, action), of_env)
        going = ~now.over
        return Match(
            now.time + 1,
            world,
            outcome.observation,
            now.score + jnp.where(going, outcome.reward, 0.0),
            now.length + going,
            now.over | outcome.terminated | outcome.truncated,
            now.terminated | (going & outcome.terminated),
        )

    end = lax.while_loop(lambda now: ~now.over.all(), step, start)
    return end.score, end.length, end.terminated


def _at(keys: Array, number: Any) -> Array:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, number)


class Player:
    """Plays the policies of all lanes at once, on the same seeds, in batches of one size: one compiled program."""

    def __init__(self, learner: Learner, lanes: int, together: int, options: dict[str, Any]) -> None:
        self._together = min(together, MOST_TOGETHER)
        self._lanes = lanes

        def of_lanes(policies: Policy, seeds: Array, wanted: Array, way: Array) -> tuple[Array, Array, Array]:
            return jax.vmap(lambda policy: play(learner, policy, seeds, wanted, way))(policies)

        self._play = jax.jit(of_lanes, compiler_options=options)

    def __call__(self, policies: Policy, first_seed: int, episodes: int, way: int) -> list[list[Ended]]:
        """For each lane, one episode for each of the seeds first_seed, first_seed + 1, ... in order."""
        ended: list[list[Ended]] = [[] for _ in range(self._lanes)]
        for start in range(0, episodes, self._together):
            seeds = np.arange(first_seed + start, first_seed + start + self._together, dtype=np.uint32)
            wanted = np.arange(start, start + self._together) < episodes
            found = jax.device_get(self._play(policies, seeds, wanted, np.int32(way)))
            for lane, (scores, lengths, terminated) in zip(ended, zip(*found, strict=True), strict=True):
                rows = zip(seeds.tolist(), scores.tolist(), lengths.tolist(), terminated.tolist(), strict=True)
                lane += [Ended(*row) for row, is_wanted in zip(rows, wanted, strict=True) if is_wanted]
        return ended

    def one(self, policy: Policy, first_seed: int, episodes: int, way: int) -> Iterator[Ended]:
        """The same for the policy of a program of one lane."""
        lanes = jax.tree.map(lambda x: x[None], policy)
        yield from self(lanes, first_seed, episodes, way)[0]
