"""Agent steps per second of a spec on environments of the host, with either engine, compiling not counted.

    python -m benchmarks.host_speed ppo_atari_lam85 --engines torch jax -s env.num_envs=64
    python -m benchmarks.host_speed sac_halfcheetah --seconds 20

One JSON line for each engine: the rate over `--seconds` after as many updates as make it steady, and of the jax engine
how that time was shared between playing and learning. It writes no run directory.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from operant.run.seeding import Seeds
from operant.spec.load import load
from operant.spec.schema import Spec

LEAST_UPDATES = 2  # before the clock starts: the first compiles


def steady(advance: Callable[[], int], warm: int, seconds: float) -> dict[str, Any]:
    """Frames per second of `advance`, which returns the frames so far, after at least `warm` of them."""
    updates = frames = 0
    while updates < LEAST_UPDATES or frames < warm:
        frames, updates = advance(), updates + 1
    began, first = time.perf_counter(), frames
    while time.perf_counter() - began < seconds:
        frames = advance()
    spent = time.perf_counter() - began
    return {"frames": frames - first, "seconds": round(spent, 2), "frames_per_second": round((frames - first) / spent)}


def measure_torch(spec: Spec, seconds: float) -> dict[str, Any]:
    """The deep engine."""
    from operant.engines.torch.learners import build_learner, prepare_torch

    learner = build_learner(spec, Seeds(spec.meta.seed), prepare_torch(spec, spec.meta.threads or 1))

    def advance() -> int:
        learner.iterate()
        return learner.tracker.frames

    return steady(advance, warm_frames(spec), seconds)


def measure_jax(spec: Spec, seconds: float) -> dict[str, Any]:
    """The jax engine."""
    import jax

    from operant.engines.jax.host.program import HostProgram
    from operant.engines.jax.program import stacked
    from operant.engines.jax.programs import build_program

    program = build_program(spec, 1)
    assert isinstance(program, HostProgram), "its environments are compiled: benchmarks.cartpole_fused measures those"
    states, hyper = program.start([Seeds(spec.meta.seed)]), stacked([program.learner.hyper(spec)])
    played, play = [0.0], program._play

    def timed_play(*given: Any) -> Any:
        jax.block_until_ready(given[0])  # else the wait for the last update would count as play
        began = time.perf_counter()
        result = play(*given)
        played[0] += time.perf_counter() - began
        return result

    frames = [0]

    def advance() -> int:
        nonlocal states
        if frames[0] < warm_frames(spec):
            played[0] = 0.0
        states, _ = program.chunk(states, hyper, 1)
        frames[0] += program.learner.frames
        return frames[0]

    vars(program)["_play"] = timed_play
    rate = steady(advance, warm_frames(spec), seconds)
    program.close()
    return {**rate, "of_which_playing": round(played[0], 2), "groups": len(program.envs.groups)}


def warm_frames(spec: Spec) -> int:
    """Frames before the first gradient step, and some more."""
    return getattr(spec.agent.algorithm, "training_start", 0) + 4 * spec.env.num_envs


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--engines", nargs="+", choices=("torch", "jax"), default=["torch", "jax"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("-s", dest="overrides", action="append", default=[], help="any setting, as in `operant train`")
    asked = parser.parse_args()
    for engine in asked.engines:
        host = ["env.vectorization=serial"] if engine == "jax" and "vectorization" not in str(asked.overrides) else []
        spec = load(asked.spec, None, [f"engine={engine}", *host, *asked.overrides]).spec
        found = (measure_torch if engine == "torch" else measure_jax)(spec, asked.seconds)
        facts = {"spec": spec.name, "env": spec.env.name, "engine": engine, "envs": spec.env.num_envs}
        print(json.dumps({**facts, **found}), flush=True)


if __name__ == "__main__":
    main()
