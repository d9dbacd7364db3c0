"""Simulated against real rounds: `operant plan`'s simulation beside runs of a tiny model on this machine.

    python -m benchmarks.plan_versus_real --generators 1 2 4 8 --staleness 0 1 4

Rates come from the telemetry of two synchronous runs with one generator, of different batch sizes. Then runs with
several generator processes on Ray, and some on a cluster of two raylets, are measured and simulated. All processes
share the cores of this machine, and with them whatever else runs on it: while a run goes on, it is measured how many
threads of other programs want a core too, and the simulation has as many in the background.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import psutil

from operant.planning.outcome import simulate
from operant.planning.telemetry import TRAINER, read_rates, read_trace
from operant.planning.workload import Machines, Split, Workload
from operant.run.layout import TRACE_FILE
from operant.run.metrics import read_rows
from operant.run.rates import Rates

RESULT = Path(__file__).parent / "results" / "plan_versus_real.json"
ATTEMPTS = 8
BARE_NODE = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
MARK = "OPERANT_PLAN_BENCHMARK"
CORES = os.cpu_count() or 1
GROUP, PROMPTS, SLOTS, VERIFIERS = 8, 8, 256, 2
SIZES = (PROMPTS, 2)
"""Prompts of a round in the runs that rates are taken from; small calls tell what a decoding step costs."""
SPEC = """
name: plan_versus_real
env: {name: copy, text: {arguments: {style: bare, letters: 5}, max_tokens: 64, workers: 2}}
agent:
  # With a term of entropy every completion is learnt from, also where all rewards are equal.
  algorithm: {name: grpo, group_size: 8, entropy_coef: 1.0e-4, probe_every: 1000000}
  model: {source: tiny, tiny: {layers: 4, width: 256, heads: 4, context: 128}, optimizer: {lr: 1.0e-6}}
meta: {max_session: 1, threads: 1, cluster: ray, log_frequency: 1, eval_frequency: 1000000000,
  save_frequency: 1000000000, eval_episodes: 2, final_episodes: 2, stall_seconds: 600}
"""


@dataclass(frozen=True)
class Case:
    """One run that is measured."""

    generators: int
    staleness: int
    raylets: int = 1
    prompts: int = PROMPTS


class OthersLoad:
    """How many threads of other programs want a core, on average, sampled while a run goes on."""

    def __init__(self) -> None:
        self.samples: list[int] = []
        self._own: dict[int, bool] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample until the block ends."""
        stop = threading.Event()
        thread = threading.Thread(target=self._sample, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _sample(self, stop: threading.Event) -> None:
        while not stop.wait(0.5):
            running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])
            self.samples.append(max(0, running - self._own_running()))

    def _own_running(self) -> int:
        """Threads of this benchmark that run or wait for a core, this one included."""
        found = 0
        for pid in psutil.pids():
            try:
                if pid not in self._own:
                    self._own[pid] = pid == os.getpid() or MARK in psutil.Process(pid).environ()
                if self._own[pid]:
                    stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
                    found += sum(stat.rpartition(")")[2].split()[0] == "R" for stat in stats)
            except (psutil.Error, OSError):
                continue
        return found


def train(folder: Path, case: Case, rounds: int, address: str) -> tuple[Path, float]:
    """Run a case; returns its session, and how many threads of others wanted a core meanwhile."""
    root = folder / "_".join(str(value) for value in vars(case).values())
    root.mkdir()
    (root / "spec.yaml").write_text(SPEC)
    settings = {
        "env.max_frame": case.prompts * GROUP * rounds,
        "agent.algorithm.batch_size": case.prompts * GROUP,
        "agent.algorithm.staleness": case.staleness,
        "meta.ray.generators": case.generators,
        "meta.ray.address": address,
    }
    flags = [word for key, value in settings.items() for word in ("-s", f"{key}={value}")]
    command = [sys.executable, "-m", "operant", "train", "spec.yaml", "--plain", "--root", "runs", *flags]
    load = OthersLoad()
    with load.watched(), (root / "log").open("w") as log:
        subprocess.run(command, cwd=root, check=True, stdout=log, stderr=log)
    return next(root.glob("runs/*/*/trial_000/session_0")), mean(load.samples)


@contextmanager
def raylets(count: int, cpus: int) -> Iterator[str]:
    """The address of a cluster of so many raylets on this machine, each of which has places for so many actors."""
    cluster = started_cluster(count, {"num_cpus": cpus, "object_store_memory": 200_000_000, **BARE_NODE})
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def started_cluster(count: int, node: dict[str, Any]) -> Any:
    """A cluster; a raylet whose agents do not come in 15 seconds gives up, and on a busy machine it is tried again."""
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    for _ in range(ATTEMPTS):
        cluster = Cluster()
        try:
            for _ in range(count):
                cluster.add_node(**node)
            return cluster
        except Exception as fault:
            print(f"a raylet did not start: {fault}", flush=True)
            cluster.shutdown()
    raise SystemExit("the machine is too busy to start Ray")


def measured_round(session: Path) -> float:
    """Seconds from one update to the next, without the first third."""
    (timeline,) = read_trace(session / TRACE_FILE)
    begins = [span.begin for span in timeline.spans["train"] if span.lane == TRAINER]
    first = len(begins) // 3
    return (begins[-1] - begins[first]) / (len(begins) - 1 - first)


def measured_staleness(session: Path) -> float:
    """Updates between the weights that wrote and those that learnt, on average over the last two thirds."""
    rows = [row["rollout/staleness"] for row in read_rows(session / "metrics.jsonl") if "rollout/staleness" in row]
    return mean(rows[len(rows) // 3 :]) if rows else 0.0


def rates_of(folder: Path, rounds: int, address: str) -> Rates:
    """The rates of runs with one generator, as if nobody else had wanted the cores."""
    folder.mkdir()
    taken = [train(folder, Case(1, 0, prompts=prompts), rounds, address) for prompts in SIZES]
    sessions, others = [session for session, _ in taken], mean(load for _, load in taken)
    rates, _ = read_rates(sessions, SLOTS, 1, VERIFIERS)
    whole, _ = read_rates(sessions[:1], SLOTS, 1, VERIFIERS)
    rates = replace(rates, train_token_seconds=whole.train_token_seconds)  # by token it is less in larger rounds
    speed = min(1.0, CORES / (1 + others))
    seconds = {name: value * speed for name, value in vars(rates).items() if name.endswith("_seconds")}
    shown = {name: f"{value:.3g}" for name, value in seconds.items()}
    print(f"rates {shown}; others {others:.2f}, so that one part ran at {speed:.0%} of a core", flush=True)
    return replace(rates, **seconds)


def compare(case: Case, session: Path, others: float, rates: Rates, rounds: int) -> dict[str, Any]:
    """A case beside its simulation."""
    workload = Workload(case.prompts, GROUP, staleness=case.staleness, slots=SLOTS)
    machines = Machines(nodes=1, gpus=case.generators + 1, cores=CORES, background=others)
    split = Split(1, case.generators, VERIFIERS)
    simulated, real = simulate(workload, rates, machines, split, rounds=rounds), measured_round(session)
    row = {
        **vars(case),
        "others": round(others, 2),
        "measured_round_seconds": round(real, 4),
        "simulated_round_seconds": round(simulated.round_seconds, 4),
        "measured_samples_per_second": round(case.prompts * GROUP / real, 1),
        "simulated_samples_per_second": round(simulated.samples_per_second, 1),
        "ratio": round(simulated.round_seconds / real, 3),
        "measured_staleness": round(measured_staleness(session), 2),
        "simulated_staleness": round(simulated.mean_staleness, 2),
    }
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def main() -> None:
    """Measure, simulate, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generators", type=int, nargs="*", default=[1, 2, 4, 8], help="none: only two raylets")
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 1, 4])
    parser.add_argument("--rounds", type=int, default=18)
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    # Ray's workers are nice to others by default, and would wait for whatever else the machine does.
    os.environ |= {MARK: "1", "OMP_NUM_THREADS": "1", "RAY_raylet_start_wait_time_s": "40", "RAY_worker_niceness": "0"}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="plan-") as name:
        folder = Path(name)
        with raylets(1, max(asked.generators, default=1) + 2) as address:
            rates = rates_of(folder / "rates", asked.rounds, address)
            for case in [Case(count, staleness) for count in asked.generators for staleness in asked.staleness]:
                rows.append(compare(case, *train(folder, case, asked.rounds, address), rates, asked.rounds))
                store(asked.out, rates, rows, asked.rounds)
        with raylets(2, 2) as address:
            for case in [Case(2, staleness, raylets=2) for staleness in asked.staleness]:
                rows.append(compare(case, *train(folder, case, asked.rounds, address), rates, asked.rounds))
                store(asked.out, rates, rows, asked.rounds)


def store(path: Path, rates: Rates, rows: list[dict[str, Any]], rounds: int) -> None:
    """Write what there is so far, and say how much of it is near."""
    within = sum(abs(row["ratio"] - 1) <= 0.2 for row in rows)
    print(f"  {within} of {len(rows)} within 20 %", flush=True)
    shown = {key: value for key, value in asdict(rates).items() if key != "lengths"}
    facts = {"cores": CORES, "rounds": rounds, "mean_length": rates.mean_length, "rates": shown}
    path.write_text(json.dumps({**facts, "within_20_percent": within, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
