"""Evaluation inside a program: one episode for each fixed seed, played to its end by one policy or by many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import policies
from operant.engines.jax.learner import Learner, Policy
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
    facts: dict[str, Array]


class Result(NamedTuple):
    """What episodes [E] came to."""

    score: Array
    length: Array
    terminated: Array
    facts: dict[str, Array]


@dataclass(frozen=True)
class Ended:
    """An episode that ended; `parts` are the facts that its problem told of it."""

    seed: int | None
    score: float
    length: int
    terminated: bool
    parts: dict[str, float] = field(default_factory=dict)


def mean_parts(split: str, ended: Sequence[Ended]) -> dict[str, float]:
    """The mean of each part over episodes, as columns of a row."""
    return {f"{split}/{name}": float(np.mean([over.parts[name] for over in ended])) for name in ended[0].parts}


def play(learner: Learner, policy: Policy, hyper: Any, seeds: Array, wanted: Array, way: Array) -> Result:
    """One episode for each seed [E], played to its end; those not `wanted` are not waited for."""
    env = learner.env
    # A seed's own key begins its episode, so a problem that can name a game by its seed plays that very game.
    keys = jax.vmap(jax.random.key)(seeds)
    world, observation = jax.vmap(env.reset)(keys)
    count = len(seeds)
    start = Match(
        jnp.int32(1),
        world,
        observation,
        jnp.zeros(count),
        jnp.zeros(count, jnp.int32),
        ~wanted,
        jnp.zeros(count, bool),
        {name: jnp.zeros(count) for name in env.facts},
    )

    def step(now: Match) -> Match:
        of_act, of_env = (_at(_at(keys, now.time), part) for part in (0, 1))
        mask = jax.vmap(env.mask)(now.world) if env.masked else None
        action = learner.act(policy, hyper, now.observation, mask, of_act[0], way)
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
            {name: jnp.where(going, outcome.facts[name], old) for name, old in now.facts.items()},
        )

    end = lax.while_loop(lambda now: ~now.over.all(), step, start)
    return Result(end.score, end.length, end.terminated, end.facts)


def ended_at(found: Result, at: Any, seed: int | None = None) -> Ended:
    """The episode at an index of results on the host."""
    parts = {name: float(value[at]) for name, value in found.facts.items()}
    return Ended(seed, float(found.score[at]), int(found.length[at]), bool(found.terminated[at]), parts)


def _at(keys: Array, number: Any) -> Array:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, number)


class Player:
    """Plays the policies of all lanes at once, on the same seeds, in batches of one size: one compiled program.

    `hyper` are the traced numbers of all lanes, stacked.
    """

    def __init__(self, learner: Learner, hyper: Any, together: int, options: dict[str, Any]) -> None:
        self._together = min(together, MOST_TOGETHER)
        self._hyper = hyper
        self._lanes = len(jax.tree.leaves(hyper)[0])

        def of_lanes(policies: Policy, hyper: Any, seeds: Array, wanted: Array, way: Array) -> Result:
            return jax.vmap(lambda policy, numbers: play(learner, policy, numbers, seeds, wanted, way))(policies, hyper)

        self._play = jax.jit(of_lanes, compiler_options=options)

    def __call__(self, policies: Policy, first_seed: int, episodes: int, way: int) -> list[list[Ended]]:
        """For each lane, one episode for each of the seeds first_seed, first_seed + 1, ... in order."""
        ended: list[list[Ended]] = [[] for _ in range(self._lanes)]
        for start in range(0, episodes, self._together):
            seeds = np.arange(first_seed + start, first_seed + start + self._together, dtype=np.uint32)
            wanted = np.arange(start, start + self._together) < episodes
            found: Result = jax.device_get(self._play(policies, self._hyper, seeds, wanted, np.int32(way)))
            for lane, rows in enumerate(ended):
                rows += [ended_at(found, (lane, i), int(seeds[i])) for i in np.flatnonzero(wanted)]
        return ended

    def one(self, policy: Policy, first_seed: int, episodes: int, way: int) -> Iterator[Ended]:
        """The same for the policy of a program of one lane."""
        lanes = jax.tree.map(lambda x: x[None], policy)
        yield from self(lanes, first_seed, episodes, way)[0]
