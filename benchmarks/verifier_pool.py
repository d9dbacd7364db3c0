"""How the pool of verifiers keeps its pace while verdicts hang and crash.

python -m benchmarks.verifier_pool --bad 1000 --good 4000 --workers 2 --seconds 0.25

Good verdicts are timed alone, then among so many that hang, then among so many whose process dies, then alone again.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem
from operant.envs.text.tasks import make_task

RESULT = Path(__file__).parent / "results" / "verifier_pool.json"
HANGING = ("sleep", "loop", "one long call", "backtracking")
CRASHING = ("exit", "segmentation fault", "kill", "abort")


def judge(completion: str, answer: Any) -> bool:
    """A verifier that does what it is told: hang in one of several ways, die in one of several, or say yes."""
    import re

    match completion:
        case "sleep":
            time.sleep(3600)
        case "loop":
            while True:
                pass
        case "one long call":
            _ = 7 ** (10**9)
        case "backtracking":
            re.fullmatch(r"(a+)+b", "a" * 64)
        case "exit":
            os._exit(3)
        case "segmentation fault":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "abort":
            os.abort()
    return completion == answer


def measured(verifiers: Verifiers, problem: Problem, good: int, bad: int, ways: tuple[str, ...]) -> dict[str, Any]:
    """The verdicts on so many good and bad answers in an order drawn by chance, and how long they took."""
    answers = ["yes"] * good + [ways[place % len(ways)] for place in range(bad)]
    Random(0).shuffle(answers)
    replaced, began = verifiers.heartbeat().replaced, time.perf_counter()
    verdicts = verifiers.verify_all([(problem, answer) for answer in answers])
    took = time.perf_counter() - began
    outcomes: dict[str, int] = {}
    for verdict in verdicts:
        outcomes[verdict.outcome] = outcomes.get(verdict.outcome, 0) + 1
    right = all((verdict.score == 1.0) == (answer == "yes") for answer, verdict in zip(answers, verdicts, strict=True))
    lost = verifiers.heartbeat().replaced - replaced
    rates = {"seconds": round(took, 2), "verdicts_per_second": round(len(answers) / took, 1)}
    return {"good": good, "bad": bad, **rates, "outcomes": outcomes, "all_as_they_should": right, "workers_lost": lost}


def storm(bad: int, good: int, workers: int, seconds: float) -> dict[str, Any]:
    """All phases, and what a worker that was lost cost beyond the time that it hung."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text('{"prompt": "?", "answer": "yes"}\n')
        task = make_task(str(rows), {"verifier": "benchmarks.verifier_pool:judge", "eval_share": 0.0})
        problem = task.problems("train")[0]
        with Verifiers([task], workers, seconds) as verifiers:
            verifiers.verify_all([(problem, "yes")] * (2 * workers))  # the processes are there
            phases = {
                "before": measured(verifiers, problem, good, 0, ()),
                "hanging": measured(verifiers, problem, good, bad, HANGING),
                "after hanging": measured(verifiers, problem, good, 0, ()),
                "crashing": measured(verifiers, problem, good, bad, CRASHING),
                "after crashing": measured(verifiers, problem, good, 0, ()),
            }
    alone = phases["before"]["seconds"]
    for name, waited in (("hanging", bad * seconds / workers), ("crashing", 0.0)):
        phase = phases[name]
        extra = (phase["seconds"] - alone - waited) * workers / max(phase["workers_lost"], 1)
        phase["milliseconds_per_lost_worker"] = round(1000 * extra, 1)
    facts = {"machine": platform.machine(), "cpus": os.cpu_count()}
    return {**facts, "workers": workers, "seconds_limit": seconds, "phases": phases}


def table(found: dict[str, Any]) -> str:
    """The phases as a table in Markdown."""
    head = "| phase | good | bad | seconds | verdicts/s | workers lost | ms for each beyond its limit |\n"
    lines = [head, "|---|---|---|---|---|---|---|\n"]
    for name, phase in found["phases"].items():
        lost = phase.get("milliseconds_per_lost_worker", "")
        numbers = (phase["good"], phase["bad"], phase["seconds"], phase["verdicts_per_second"], phase["workers_lost"])
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} | {lost} |\n")
    return "".join(lines)


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bad", type=int, default=1_000)
    parser.add_argument("--good", type=int, default=4_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    found = storm(options.bad, options.good, options.workers, options.seconds)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found), end="")
    sys.exit(0 if all(phase["all_as_they_should"] for phase in found["phases"].values()) else 1)


if __name__ == "__main__":
    main()
