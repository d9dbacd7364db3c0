"""A search whose trials share a process, beside the same search with a process for each trial: results and CPU time.

    python -m benchmarks.search_lanes                              # 64 trials of PPO on CartPole, jax engine, CPU
    python -m benchmarks.search_lanes --trials 8 --frames 10240    # a look in two minutes

Each of the two searches compiles its programs itself, once; CPU-seconds are those of the search and all its processes.
Exits with 1 where a trial of one search is not byte for byte that of the other.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from operant.run.records import Records, difference
from operant.run.run import find_sessions

SPEC = "ppo_cartpole_jax_search"


def search(folder: Path, trials: int, frames: int, resources: str) -> tuple[float, float]:
    """Run the search; the CPU-seconds and the seconds that it took."""
    settings = {
        "env.max_frame": frames,
        "meta.device": "cpu",
        "meta.search_sampler": "random",
        "meta.search_scheduler": "null",
        "meta.search_keep": trials,
        "meta.search_resources": resources,
    }
    words = [word for path, value in settings.items() for word in ("-s", f"{path}={value}")]
    words += ["--trials", str(trials), "--workers", str(trials), "--out", str(folder / "search"), "--plain"]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}
    begun, used = time.perf_counter(), _cpu_of_children()
    argv = [sys.executable, "-m", "operant", "search", SPEC, *words]
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, check=True)
    return _cpu_of_children() - used, time.perf_counter() - begun


def _cpu_of_children() -> float:
    """CPU-seconds of all processes that have ended and were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def differences(first: Path, second: Path) -> list[str]:
    """A line for each trial whose rows, episodes or weights are not the same in both searches."""
    pairs = zip(find_sessions(first / "search"), find_sessions(second / "search"), strict=True)
    found = [(mine.path.parent.name, difference(Records.of(mine), Records.of(theirs))) for mine, theirs in pairs]
    return [f"{trial}: {where}" for trial, where in found if where is not None]


def main() -> int:
    """Both searches, and their comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--frames", type=int, default=20_480)
    asked = parser.parse_args()
    ways = {f"{asked.trials} lanes": f"{{cpu: 4096, lanes: {asked.trials}}}", "separate": "{cpu: 1, lanes: 1}"}
    used: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / str(number) for number in range(len(ways))]
        print(f"{SPEC}: {asked.trials} trials of {asked.frames:,} frames")
        print(f"{'way':12}{'CPU-seconds':>12}{'seconds':>9}", flush=True)
        for place, (way, resources) in zip(places, ways.items(), strict=True):
            place.mkdir()
            cpu, seconds = search(place, asked.trials, asked.frames, resources)
            used.append(cpu)
            print(f"{way:12}{cpu:12.1f}{seconds:9.1f}", flush=True)
        found = differences(*places)
    print(f"ratio of CPU-seconds: {used[1] / used[0]:.1f}")
    print(f"the same bytes: {asked.trials - len(found)} of {asked.trials} trials", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
