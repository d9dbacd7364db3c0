"""Random legal play of HackMatrix in JAX on this machine's device: compile time, steps per second, kernels.

    python -m benchmarks.hackmatrix_rollout                       # 256, 1024, 2048 environments
    python -m benchmarks.hackmatrix_rollout --envs 8192 32768 --steps 64 --profile trace --form jax

A step is the mask, a legal action at random, the step itself with automatic reset, and the observation. One JSON line
for each number of environments; `kernels` counts the fusions of the compiled program, each of which is one
launch on an accelerator, once however often its loop runs. `steps_per_core_second` is by the time that
processors spent, which tells more than the clock where a machine is shared. With `--profile` a trace of
the last call is left there.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.kernel.calls import FORMS, kernel_is_used
from operant.envs.hackmatrix.rules.env import HackMatrixEnv
from operant.envs.hackmatrix.rules.state import State

REPEATS = 5


def start(env: HackMatrixEnv, number: int) -> State:
    """New games of the seeds 0, 1, .."""
    return jax.jit(jax.vmap(env.reset))(jax.vmap(jax.random.key)(jnp.arange(number)))[0]


def play(env: HackMatrixEnv, states: State, key: Array, steps: int) -> tuple[State, Array]:
    """Play at random for some steps; the sums of rewards and observations keep both from being optimised away."""
    number = states.words.shape[0]

    def one(states: State, key: Array) -> tuple[State, Array]:
        acting, resetting = jax.random.split(key)
        chances = jax.random.uniform(acting, (number, env.actions.n))
        actions = jnp.where(jax.vmap(env.mask)(states), chances, -1).argmax(-1)
        states, seen, outcome = env.advance(states, actions, jax.random.split(resetting, number))
        over = outcome.terminated | outcome.truncated
        return states, jnp.stack([outcome.reward.sum(), seen.sum(), over.sum()])

    states, sums = jax.lax.scan(one, states, jax.random.split(key, steps))
    return states, sums.sum(0)


def measure(number: int, steps: int, profile: str | None = None, form: str = "auto") -> dict[str, Any]:
    """One line of the result."""
    env = HackMatrixEnv(form=form)
    states = start(env, number)
    clock = time.perf_counter()
    lowered = jax.jit(play, static_argnums=(0, 3), donate_argnums=1).lower(env, states, jax.random.key(0), steps)
    traced = time.perf_counter() - clock
    compiled = lowered.compile()
    seconds = time.perf_counter() - clock
    rates: list[float] = []
    cpu: list[float] = []
    sums = jnp.zeros(3)
    for repeat in range(REPEATS):
        clock, used = time.perf_counter(), time.process_time()
        states, sums = jax.block_until_ready(compiled(states, jax.random.key(repeat)))
        rates.append(number * steps / (time.perf_counter() - clock))
        cpu.append(number * steps / (time.process_time() - used))
    if profile:
        with jax.profiler.trace(profile):
            jax.block_until_ready(compiled(states, jax.random.key(REPEATS)))
    return {
        "form": "kernel" if kernel_is_used(form) else "jax",
        "envs": number,
        "compile_seconds": round(seconds, 2),
        "of_which_tracing": round(traced, 2),
        "steps_per_second": round(max(rates[1:])),
        "steps_per_core_second": round(max(cpu[1:])),
        "microseconds_per_vector_step": round(number / max(rates[1:]) * 1e6),
        **launches(compiled.as_text() or ""),
        "mean_length": round(number * steps / max(float(sums[2]), 1), 1),
    }


def launches(text: str) -> dict[str, int]:
    """How many operations of the kinds that cost a launch or a pass over memory the program has."""
    kinds = {"kernels": "fusion", "loops": "while", "copies": "copy", "sorts": "sort", "calls": "custom-call"}
    return {name: len(re.findall(rf" {kind}\(", text)) for name, kind in kinds.items()}


def main() -> None:
    """A line for each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=[256, 1024, 2048])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--profile", default=None, metavar="FOLDER")
    parser.add_argument("--form", choices=FORMS, default="auto")
    options = parser.parse_args()
    print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__}), flush=True)
    for number in options.envs:
        print(json.dumps(measure(number, options.steps, options.profile, options.form)), flush=True)


if __name__ == "__main__":
    main()
