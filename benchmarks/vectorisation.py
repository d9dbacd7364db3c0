"""Environments stepped one after another and in worker processes, by the clock, alternating.

    python -m benchmarks.vectorisation                     # needs as many idle cores as it is to measure
    python -m benchmarks.vectorisation --cores 2 4 8 --envs Ant-v5

Prints frames per second of both ways and their ratio; `env.vectorization: auto` follows these.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

from operant.envs.cores import CORES_VARIABLE
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.spec.settings.sections import EnvSpec

ENVS = ("CartPole-v1", "LunarLander-v3", "BipedalWalker-v3", "HalfCheetah-v5", "Humanoid-v5")
REPEATS = 5


def actions_for(vector: AutoresetVectorEnv, rng: np.random.Generator) -> np.ndarray:
    """Random actions, drawn before the clock starts."""
    if vector.actions.discrete:
        return rng.integers(vector.actions.size, size=vector.num)
    return rng.uniform(-1, 1, (vector.num, vector.actions.size))


def frames_per_second(vector: AutoresetVectorEnv, steps: int) -> float:
    """The rate of random play."""
    rng = np.random.default_rng(0)
    actions = [actions_for(vector, rng) for _ in range(steps)]
    start = time.perf_counter()
    for action in actions:
        vector.step(action)
    return steps * vector.num / (time.perf_counter() - start)


def compare(name: str, num: int, cores: int, steps: int) -> tuple[float, float]:
    """Median rates of serial and of processes."""
    os.environ[CORES_VARIABLE] = str(cores)
    ways = [
        AutoresetVectorEnv(EnvSpec(name=name, vectorization=way), num, lambda i, k: i + 1000 * k)
        for way in ("serial", "processes")
    ]
    rates = [[frames_per_second(vector, steps) for vector in ways] for _ in range(REPEATS)]
    for vector in ways:
        vector.close()
    serial, processes = (statistics.median(each) for each in zip(*rates, strict=True))
    return serial, processes


def main() -> None:
    """A line for each environment, number of copies and number of cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=list(ENVS))
    parser.add_argument("--copies", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--cores", nargs="+", type=int, default=[2])
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    print(f"{'environment':20}{'copies':>7}{'cores':>6}{'serial/s':>10}{'processes/s':>12}{'ratio':>7}")
    for name in asked.envs:
        for num in asked.copies:
            for cores in asked.cores:
                serial, processes = compare(name, num, cores, asked.steps)
                ratio = processes / serial
                print(f"{name:20}{num:7}{cores:6}{serial:10,.0f}{processes:12,.0f}{ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
