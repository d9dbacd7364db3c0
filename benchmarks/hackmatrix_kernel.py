"""HackMatrix as one kernel a vector step beside its JAX form on this machine's device: the same bits, and the rates.

    python -m benchmarks.hackmatrix_kernel                            # a million steps compared, then both forms timed
    python -m benchmarks.hackmatrix_kernel --envs 32768 --compare 4194304 --timed 8192 32768 131072

Both forms are given the same states, actions and keys, step after step: legal actions at random and a
few illegal ones, from new games and from states made up at random (any stage, all programs, many
enemies, time running out). Masks, observations, states, histories, rewards and their parts, flags and
facts must agree in every bit; the exit status is 1 where one does not. What the steps met is counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.hackmatrix_rollout import measure, start
from operant.envs.hackmatrix.constants import ACTION_COUNT, FIRST_PROGRAM, PROGRAM_COUNT, STEP_LIMIT, UNDO
from operant.envs.hackmatrix.kernel.calls import FORMS
from operant.envs.hackmatrix.rules.bits import SQUARES
from operant.envs.hackmatrix.rules.env import HackMatrixEnv
from operant.envs.hackmatrix.rules.lists import ENEMY_ALIVE, SIGNAL_ALIVE, SLOTS
from operant.envs.hackmatrix.rules.state import LISTS_START, OWNED_ROW, SCENE_WORDS, State

KERNEL, JAX = HackMatrixEnv(form="kernel"), HackMatrixEnv(form="jax")
MADE_UP = 0.1  # of the games at every step
ILLEGAL = 0.03
CHUNK = 64  # steps to a call
NUMBERS = range(1, 6)  # rows: credits, energy, siphons, score, attack
STEPS_ROW = SCENE_WORDS + 3


class Compared(NamedTuple):
    """What differed, and what was met on the way: numbers of games summed over steps."""

    masks: Array
    steps: Array
    illegal: Array
    stages: Array
    won: Array
    out_of_time: Array
    programs: Array


def made_up(words: Array, key: Array) -> Array:
    """Games with other numbers and crowds; the board, the player's place and the random source stay."""
    keys, number = jax.random.split(key, 8), len(words)
    counts = jax.random.randint(keys[0], (number, len(NUMBERS)), 0, jnp.array([60, 60, 5, 20, 4])) + (
        jnp.arange(5) == 4
    )
    words = words.at[:, 1:6].set(counts.astype(jnp.uint32))
    words = words.at[:, OWNED_ROW].set(jax.random.bits(keys[1], (number,)) & ((1 << PROGRAM_COUNT) - 1))
    stage = jax.random.randint(keys[2], (number,), 1, 9).astype(jnp.uint32)
    words = words.at[:, SCENE_WORDS].set(words[:, SCENE_WORDS] & ~jnp.uint32(15) | stage)
    pending = jnp.array([0, 0, 0, 2, 9, 50], jnp.uint32)[jax.random.randint(keys[3], (number,), 0, 6)]
    words = words.at[:, SCENE_WORDS + 2].set(pending)
    late = jax.random.bernoulli(keys[4], 0.2, (number,))
    words = words.at[:, STEPS_ROW].set(jnp.where(late, STEP_LIMIT - 2, words[:, STEPS_ROW]))
    crowds = [_enemies(keys[5], number), _transmissions(keys[6], number)]
    return words.at[:, LISTS_START + SLOTS : SCENE_WORDS].set(jnp.concatenate(crowds, 1))


def _enemies(key: Array, number: int) -> Array:
    bits = jax.random.bits(key, (3, number, SLOTS))
    at, seen = jnp.array(SQUARES, jnp.uint32)[(bits[:2] % len(SQUARES)).astype(jnp.int32)]
    looks = (bits[2] & 0x1F) << 12  # kind, stunned, and where it came from
    return _first_few(key, at | seen << 6 | looks | 1 << ENEMY_ALIVE | (1 + (bits[2] >> 8) % 3) << 24)


def _transmissions(key: Array, number: int) -> Array:
    bits = jax.random.bits(key, (number, SLOTS))
    at = jnp.array(SQUARES, jnp.uint32)[
        jax.vmap(lambda each: jax.random.permutation(each, SLOTS))(jax.random.split(key, number))
    ]
    return _first_few(key, at | (bits & 15) << 6 | 1 << SIGNAL_ALIVE | (1 + (bits >> 8) % 5) << 16)


def _first_few(key: Array, entries: Array) -> Array:
    """A list of none, some or all of the entries."""
    most = jnp.array([0, 3, 10, SLOTS])
    number = jax.random.randint(
        jax.random.fold_in(key, 1), (len(entries), 1), 0, 1 + most[jax.random.randint(key, (len(entries), 1), 0, 4)]
    )
    return jnp.where(jnp.arange(SLOTS) < number, entries, 0).astype(jnp.uint32)


def differing(one: Any, other: Any) -> Array:
    """How many games differ in any bit of any array."""
    unequal = [_bits(a) != _bits(b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)]
    return jnp.stack([each.reshape(len(each), -1).any(1) for each in unequal]).any(0).sum()


def _bits(array: Array) -> Array:
    return jax.lax.bitcast_convert_type(array, jnp.uint32) if array.dtype == jnp.float32 else array


def compare_step(states: State, key: Array) -> tuple[State, Compared]:
    """One step of both forms."""
    keys, number = jax.random.split(key, 6), len(states.words)
    chosen = jax.random.bernoulli(keys[0], MADE_UP, (number, 1))
    states = states._replace(words=jnp.where(chosen, made_up(states.words, keys[1]), states.words))
    mask, other = jax.vmap(KERNEL.mask)(states), jax.vmap(JAX.mask)(states)
    chances = jax.random.uniform(keys[2], (number, ACTION_COUNT)).at[:, FIRST_PROGRAM + UNDO].add(0.5)
    odd = jax.random.bernoulli(keys[3], ILLEGAL, (number, 1))
    actions = jnp.where(mask | odd, chances, -1).argmax(-1)
    fresh = jax.random.split(keys[4], number)
    found, wanted = KERNEL.advance(states, actions, fresh), JAX.advance(states, actions, fresh)
    singly = jax.vmap(KERNEL.step)(states, actions)[1]
    outcome = found[2]
    same = differing(found, wanted) + differing(singly, outcome)
    illegal = outcome.metrics["reward/step_penalty"] == 0
    stages = outcome.metrics["reward/stage_completion"] > 0
    met = [illegal, stages, outcome.facts["won"] > 0, outcome.truncated, ~illegal & (actions >= FIRST_PROGRAM)]
    return found[0], Compared(differing(mask, other), same, *(each.sum() for each in met))


def compare(number: int, steps: int, seed: int) -> dict[str, int]:
    """Both forms for so many steps of so many games."""
    chunk = jax.jit(lambda states, key: jax.lax.scan(compare_step, states, jax.random.split(key, CHUNK)))
    states = start(KERNEL, number)
    total = np.zeros(len(Compared._fields), np.int64)
    for turn in range(-(-steps // (number * CHUNK))):
        states, met = chunk(states, jax.random.fold_in(jax.random.key(seed), turn))
        total += np.array([int(each.sum()) for each in met])
        done = (turn + 1) * number * CHUNK
        print(json.dumps({"compared": done, "differing": int(total[:2].sum())}), flush=True)
    return dict(zip(Compared._fields, total.tolist(), strict=True))


def main() -> None:
    """Compare, then time both forms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=2048, help="games that are compared side by side")
    parser.add_argument("--compare", type=int, default=1_000_000, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timed", type=int, nargs="*", default=[2048], help="numbers of games that are timed")
    parser.add_argument("--steps", type=int, default=64, help="vector steps that are timed")
    options = parser.parse_args()
    print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__}), flush=True)
    found = compare(options.envs, options.compare, options.seed)
    print(json.dumps(found), flush=True)
    for number in options.timed:
        for form in FORMS[1:]:
            print(json.dumps(measure(number, options.steps, form=form)), flush=True)
    sys.exit(1 if found["masks"] + found["steps"] else 0)


if __name__ == "__main__":
    main()
