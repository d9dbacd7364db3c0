"""PPO on CartPole in one compiled program, by the clock.

    python -m benchmarks.cartpole_fused                            # on whatever device JAX finds
    python -m benchmarks.cartpole_fused --envs 256 2048 --updates 10 --device cpu

128 steps, 4 epochs, 4 minibatches, two layers of 64 tanh units each for actor and critic. Prints
environment steps per second, updates included, of the second call of the compiled chunk.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import numpy as np

from operant.engines.jax.learners import build_learner
from operant.engines.jax.platform import prepare_jax
from operant.engines.jax.program import Program, stacked
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ENVS = (256, 2048, 16_384, 65_536)
STEPS, MINIBATCHES = 128, 4


def spec_of(envs: int, device: str, precision: str = "float32") -> Spec:
    """The setting at a number of environments."""
    algorithm = {
        "name": "ppo",
        "time_horizon": STEPS,
        "minibatch_size": envs * STEPS // MINIBATCHES,
        "training_epoch": 4,
        "clip_vloss": 0.2,
    }
    net = {"hidden": [64, 64], "activation": "tanh", "optimizer": {"lr": 2.5e-4, "lr_end_fraction": 0.0}}
    return Spec.model_validate(
        {
            "engine": "jax",
            "env": {"name": "CartPole-v1", "num_envs": envs, "max_frame": 10**10},
            "agent": {"algorithm": algorithm, "net": net},
            "meta": {"device": device, "precision": precision},
        }
    )


def ready(spec: Spec, lanes: int = 1) -> tuple[Program, Any, Any]:
    """The compiled program's parts: itself, fresh states, and the traced numbers."""
    prepare_jax(spec)
    program = Program(build_learner(spec), lanes)
    hyper = stacked([program.learner.hyper(spec)] * lanes)
    return program, program.placed(program.start([Seeds(seed) for seed in range(lanes)])), hyper


def measure(spec: Spec, updates: int, lanes: int = 1) -> dict[str, float]:
    """Seconds to compile and run a chunk first, and steps per second of the second call."""
    program, states, hyper = ready(spec, lanes)
    begun = time.perf_counter()
    states, _ = jax.block_until_ready(program.chunk(states, hyper, np.int32(updates)))
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    states, _ = jax.block_until_ready(program.chunk(states, hyper, np.int32(updates)))
    second = time.perf_counter() - begun
    frames = program.learner.frames * updates * lanes
    return {"first_call": first, "second_call": second, "steps_per_second": frames / second}


def updates_for(envs: int, asked: int | None) -> int:
    """Enough updates for a second or so on an accelerator."""
    return asked or max(8, 2**24 // (envs * STEPS) * 4)


def main() -> None:
    """Measure each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=ENVS)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--lanes", type=int, default=1, help="seeds in one program")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    arguments = parser.parse_args()
    for envs in arguments.envs:
        updates = updates_for(envs, arguments.updates)
        found = measure(spec_of(envs, arguments.device, arguments.precision), updates, arguments.lanes)
        print(
            f"{envs:>7,} environments: {found['steps_per_second']:>13,.0f} steps/s"
            f"    ({updates} updates; first call {found['first_call']:.1f} s, second {found['second_call']:.2f} s)"
            f"    {jax.devices()[0].device_kind}",
            flush=True,
        )


if __name__ == "__main__":
    main()
