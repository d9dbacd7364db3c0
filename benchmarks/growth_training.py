"""How training grows: frames per second with more environments, seeds in one program, replay, and longer runs.

    python -m benchmarks.growth_training                 (writes results/growth_training.json)
    python -m benchmarks.growth_training --curves replay length

Rates are of steady training, compiling not counted, with one thread each. Of `length` it is a real run with its run
directory, in tenths: rows, episodes and checkpoints are written, and the rate of the last tenth beside the first shows
whether they grow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.host_speed import measure_torch
from operant.run.seeding import Seeds
from operant.spec.load import load
from operant.spec.schema import Spec

OUT = Path(__file__).with_name("results") / "growth_training.json"
SECONDS = 4.0
ENVS = {"torch": (1, 4, 16, 64, 256), "jax": (16, 64, 256, 1024, 4096, 16_384)}
SEEDS = (1, 2, 4, 8, 16, 32, 64)
REPLAY = (1_000, 10_000, 100_000, 1_000_000)
LENGTHS = {"ppo_cartpole": 400_000, "ppo_cartpole_jax": 4_000_000, "dqn_cartpole": 60_000}


def rate_jax(spec: Spec, lanes: int = 1) -> float:
    """Frames per second of all lanes of a compiled program, after its first gradient steps."""
    import jax
    import numpy as np

    from operant.engines.jax.platform import prepare_jax
    from operant.engines.jax.program import stacked
    from operant.engines.jax.programs import build_program

    prepare_jax(spec)
    program = build_program(spec, lanes)
    hyper = stacked([program.learner.hyper(spec)] * lanes)
    states = program.placed(program.start([Seeds(seed) for seed in range(lanes)]))

    def advance(updates: int) -> None:
        nonlocal states
        states, metrics = program.chunk(states, hyper, np.int32(updates))
        jax.block_until_ready((states, metrics))

    whole = max(1, min(program.row_updates, 4096 // program.learner.frames))
    for _ in range(2 + program.learner.start // (program.learner.frames * whole)):
        advance(whole)
    began, frames = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        advance(whole)
        frames += whole * program.learner.frames * lanes
    return frames / (time.perf_counter() - began)


def environments() -> Iterator[dict[str, Any]]:
    """PPO on CartPole, four minibatches whatever the number of environments."""
    for engine, name in (("torch", "ppo_cartpole"), ("jax", "ppo_cartpole_jax")):
        for envs in ENVS[engine]:
            sizes = [f"env.num_envs={envs}", "agent.algorithm.time_horizon=64", f"{SIZE}={16 * envs}"]
            spec = load(name, None, [*sizes, "env.max_frame=1e9"])
            rate = measure_torch(spec.spec, SECONDS)["frames_per_second"] if engine == "torch" else rate_jax(spec.spec)
            yield {"spec": name, "environments": envs, "frames_per_second": round(rate)}


SIZE = "agent.algorithm.minibatch_size"


def seeds() -> Iterator[dict[str, Any]]:
    """PPO on CartPole, every seed a lane of one program; the frames are those of all."""
    for lanes in SEEDS:
        rate = rate_jax(load("ppo_cartpole_jax", None, []).spec, lanes)
        yield {"spec": "ppo_cartpole_jax", "seeds": lanes, "frames_per_second": round(rate)}


def replay() -> Iterator[dict[str, Any]]:
    """SAC on Pendulum with room for so many transitions, of which a few thousand are there."""
    for name in ("sac_pendulum", "sac_pendulum_jax"):
        for size in REPLAY:
            room = [f"agent.memory.max_size={size}", "agent.algorithm.training_start=500", "env.max_frame=1e8"]
            spec = load(name, None, room).spec
            rate = rate_jax(spec) if spec.engine == "jax" else measure_torch(spec, SECONDS)["frames_per_second"]
            yield {"spec": name, "replay": size, "frames_per_second": round(rate)}


def length() -> Iterator[dict[str, Any]]:
    """Real runs: the rate of every tenth of them, and what lies on disk at the end."""
    for name, frames in LENGTHS.items():
        with tempfile.TemporaryDirectory() as folder:
            settings = [f"env.max_frame={frames}", "meta.max_session=1", "meta.final_episodes=1"]
            words = [word for setting in settings for word in ("-s", setting)]
            subprocess.run([sys.executable, "-m", "operant", "train", name, *words, "--root", folder], check=True)
            (file,) = Path(folder).rglob("metrics.jsonl")
            rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            on_disk = sum(path.stat().st_size for path in file.parent.rglob("*") if path.is_file())
        yield {"spec": name, "frames": frames, "tenths": tenths(rows, frames), "bytes": on_disk}


def tenths(rows: list[dict[str, Any]], frames: int) -> list[int]:
    """Frames per second in every tenth of a run, by its metric rows."""
    marks = [next((row for row in rows if row["frames"] >= frames * k // 10), rows[-1]) for k in range(1, 11)]
    pairs = zip([{"frames": 0, "seconds": rows[0]["seconds"]}, *marks[:-1]], marks, strict=True)
    return [round((b["frames"] - a["frames"]) / max(b["seconds"] - a["seconds"], 1e-9)) for a, b in pairs]


CURVES: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "environments": environments,
    "seeds": seeds,
    "replay": replay,
    "length": length,
}


def main() -> None:
    """Measure the curves that are asked for, each row printed as it is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    found = json.loads(asked.out.read_text(encoding="utf-8")) if asked.out.exists() else {}
    for curve in asked.curves:
        found[curve] = {"load": round(os.getloadavg()[0], 1), "rows": []}
        for row in CURVES[curve]():
            found[curve]["rows"].append(row)
            print(json.dumps(row), flush=True)
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
