"""PPO on HackMatrix in one compiled program, by the clock and by parts.

    python -m benchmarks.hackmatrix_train                          # on whatever device JAX finds
    python -m benchmarks.hackmatrix_train --envs 2048 8192 32768 --storage bfloat16 --precision bfloat16

Prints environment steps per second, updates included, of the second call of the compiled chunk, and
what a rollout alone and the evaluating and learning alone take.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.cartpole_fused import ready
from operant.engines.jax.ppo import Ppo
from operant.engines.jax.program import Program, lane_of
from operant.spec.schema import Spec

STEPS = 128
MINIBATCH = 8192
REPEATS = 5


def spec_of(envs: int, arguments: argparse.Namespace) -> Spec:
    """The setting at a number of environments."""
    algorithm = {
        "name": "ppo",
        "time_horizon": arguments.steps,
        "minibatch_size": min(arguments.minibatch, envs * arguments.steps),
        "training_epoch": arguments.epochs,
        "entropy_coef": 0.15,
    }
    net = {"hidden": [256, 256], "activation": "relu", "shared": True, "optimizer": {"lr": 2.5e-4}}
    meta = {"device": arguments.device, "storage": arguments.storage, "precision": arguments.precision}
    env = {"name": "HackMatrix-v0", "num_envs": envs, "max_frame": 10**10}
    return Spec.model_validate({"env": env, "agent": {"algorithm": algorithm, "net": net}, "meta": meta})


def seconds(function: Callable[..., Any], *given: Any) -> float:
    """The median time of a compiled function, once it is warm."""
    compiled = jax.jit(function).lower(*given).compile()
    jax.block_until_ready(compiled(*given))
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(compiled(*given))
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def parts(program: Program, states: Any, hyper: Any) -> dict[str, float]:
    """Seconds of one update by parts: playing, evaluating (values, log-probabilities, advantages), and learning."""
    learner, state, numbers, key = program.learner, lane_of(states, 0), lane_of(hyper, 0), jax.random.key(0)
    assert isinstance(learner, Ppo)
    after, steps, truncations, _ = jax.jit(learner.rollout)(state, key)
    last = after.observation
    samples, *_ = jax.jit(lambda s, c: learner.make_samples(state, s, c, last, numbers, None))(steps, truncations)
    return {
        "rollout": seconds(learner.rollout, state, key),
        "evaluating": seconds(
            lambda s, c: learner.make_samples(state, s, c, last, numbers, None)[0], steps, truncations
        ),
        "learning": seconds(lambda s: learner.learn(state, s, key, numbers, jnp.float32(0), None)[0], samples),
    }


def main() -> None:
    """Measure each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=(256, 2048, 8192, 32_768))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--minibatch", type=int, default=MINIBATCH)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--storage", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--no-parts", action="store_true", help="only the whole chunk")
    arguments = parser.parse_args()
    for envs in arguments.envs:
        program, states, hyper = ready(spec_of(envs, arguments))
        begun = time.perf_counter()
        states, _ = jax.block_until_ready(program.chunk(states, hyper, np.int32(arguments.updates)))
        first = time.perf_counter() - begun
        begun = time.perf_counter()
        states, _ = jax.block_until_ready(program.chunk(states, hyper, np.int32(arguments.updates)))
        second = time.perf_counter() - begun
        rate = program.learner.frames * arguments.updates / second
        print(f"{envs:>7,} environments: {rate:>11,.0f} steps/s    (first call {first:.1f} s, second {second:.2f} s)")
        if not arguments.no_parts:
            found = parts(program, states, hyper)
            words = ", ".join(f"{name} {value * 1e3:,.1f} ms" for name, value in found.items())
            print(f"        of an update's {second / arguments.updates * 1e3:,.1f} ms: {words}", flush=True)


if __name__ == "__main__":
    main()
