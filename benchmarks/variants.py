"""Tries several settings of the suites' cells side by side, on a machine with many cores.

    python -m benchmarks.variants tries.json --out DIR --seconds 560

`tries.json` maps a name of one's own to arguments of `operant bench`:

    {"slow": ["box2d", "--cells", "dqn_lunar", "-s", "agent.net.optimizer.lr=1e-4"],
     "shipped": ["box2d", "--cells", "dqn_lunar"]}

Each try has runs and results of its own (`DIR/NAME`), and after `--seconds` all are stopped as by
Ctrl-C: a run keeps its last checkpoint, and the same command goes on from there. The last lines
of each try are told, and where its seeds are.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from operant.report.read import EVAL_SCORE, read_trial
from operant.run.run import find_sessions

GRACE_SECONDS = 20


def start(name: str, arguments: list[str], runs: Path, out: Path) -> subprocess.Popen[bytes]:
    """One try as a process of its own, which writes to `DIR/NAME.log`."""
    out.mkdir(parents=True, exist_ok=True)
    places = ["--root", str(runs / name), "--out", str(out / name)]
    with (out / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "operant", "bench", *arguments, *places],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait(tries: dict[str, subprocess.Popen[bytes]], seconds: float) -> None:
    """Until every try has ended, or time is up and they were asked to stop."""
    deadline = time.monotonic() + seconds
    while any(one.poll() is None for one in tries.values()) and time.monotonic() < deadline:
        time.sleep(1)
    for one in tries.values():
        if one.poll() is None:
            os.killpg(one.pid, signal.SIGINT)
    for one in tries.values():
        try:
            one.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(one.pid, signal.SIGKILL)


def curves(runs: Path) -> list[str]:
    """Per seed of every cell: frames and score of each evaluation so far."""
    lines = []
    for place in sorted(path for path in runs.glob("*/bench-*") if path.is_dir()):
        for session in read_trial(find_sessions(place)[0].path.parent).sessions:
            curve = session.curve(EVAL_SCORE)
            points = "  ".join(f"{x / 1000:.0f}k {y:.0f}" for x, y in zip(curve.x, curve.y, strict=True))
            lines.append(f"    {place.parent.name} seed {session.seed}: {points} {session.error or ''}".rstrip())
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run the tries of a file, and say what each gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tries", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="logs and results")
    parser.add_argument("--runs", type=Path, default=Path("runs/variants"), help="the runs (default: runs/variants)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop them all after this long")
    chosen = parser.parse_args(arguments)
    wanted = json.loads(chosen.tries.read_text(encoding="utf-8"))
    tries = {name: start(name, given, chosen.runs, chosen.out) for name, given in wanted.items()}
    wait(tries, chosen.seconds)
    for name in tries:
        tail = (chosen.out / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-2:]
        print("\n".join([name, *(f"    {line}" for line in tail), *curves(chosen.runs / name)]), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
