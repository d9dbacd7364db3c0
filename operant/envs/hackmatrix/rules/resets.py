"""New boards for the few environments of many that need one: a next stage, or a new game."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.observation import observe
from operant.envs.hackmatrix.rules.stages import lay_out, new_games
from operant.envs.hackmatrix.rules.state import pack, unpack

SHARE = 16  # one environment in so many is renewed in one round
FEWEST = 8  # a round has at least so many, where there are


class Renewal(NamedTuple):
    """States as words, observations to act on next, and those from before any reset; environments first."""

    words: Array
    first: Array
    final: Array


def renew(start: Renewal, next_stage: Array, over: Array, keys: Array) -> Renewal:
    """Lay out a next stage where one was reached and a new game where one is over, in rounds of a fixed size.

    What is laid out is gathered into a batch and put back where it belongs, so the work is done for
    those that need it and not for all. An environment may need both, when time runs out on the step
    that completes a stage: its next stage is then only seen in the final observation.
    """
    number = over.shape[0]
    size = min(number, max(FEWEST, number // SHARE))
    queue, total = _queue(jnp.concatenate([next_stage, over]), size)
    data = jax.random.key_data(keys)
    sources = Source(data[:, 0], data[:, 1], jnp.zeros(number, jnp.uint32))

    def one(turn: Array, done: Renewal) -> Renewal:
        waiting = turn * size + jnp.arange(size) < total
        item = lax.dynamic_slice_in_dim(queue, turn * size, size)
        env, is_new = item % number, item >= number
        fresh = new_games(jax.tree.map(lambda words: words[env], sources))
        ready = settled(jnp.where(is_new, fresh, done.words[env].T))
        words = settled(pack(lay_out(unpack(ready))))
        obs = observe(unpack(words))
        lasting = jnp.where(waiting & (is_new | ~over[env]), env, number)
        passing = jnp.where(waiting & ~is_new, env, number)
        return Renewal(
            done.words.at[lasting].set(words.T, mode="drop"),
            done.first.at[lasting].set(obs, mode="drop"),
            done.final.at[passing].set(obs, mode="drop"),
        )

    return lax.fori_loop(0, (total + size - 1) // size, one, start)


def _queue(wanted: Array, size: int) -> tuple[Array, Array]:
    """The indices that are wanted, in order and before all others, and how many they are."""
    order = jnp.argsort(~wanted, stable=True)
    return jnp.concatenate([order, jnp.zeros(size, order.dtype)]), wanted.sum(dtype=jnp.int32)
