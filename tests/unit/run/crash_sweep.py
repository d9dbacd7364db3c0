"""Kills the toy trainer again and again and reports what the survivors left behind.

`crash_sweep.py operations FOLDER` kills it at every single file operation of a run: before the operation, or half-way
through it where it has a half. `crash_sweep.py moments FOLDER COUNT` kills it at random moments. The report is JSON on
standard output. It is a process of its own because it forks, which a test runner with threads should not.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - imported before the forks, so that each child need not
from toy_trainer import make_run, train

from operant.run import Run, provenance, read_rows
from operant.run.checkpoint import verify
from operant.run.layout import EPISODES_FILE, EVENTS_FILE, METRICS_FILE, checkpoint_paths
from operant.run.progress import without_timing

OPERATIONS = ("fsync", "replace", "rename", "symlink", "ftruncate", "unlink", "mkdir", "rmdir")
DAMAGE = ("corrupt_checkpoint", "lost_rows", "damaged", "failed")
SMALL = {"max_frame": 12, "save": 6, "keep": 1}
LONG = {"max_frame": 6000, "save": 90, "keep": 2}


def main(mode: str, folder: Path, count: int = 0) -> dict[str, Any]:
    """Run the sweep and say which kills changed the outcome."""
    provenance.installed_packages = dict
    provenance._run = lambda command, seconds: None
    settings, pause = (SMALL, 0.0) if mode == "operations" else (LONG, 0.0005)
    twin = make_run(folder / "twin", **settings)
    operations = _wait(_fork(lambda: _die_at(None, lambda: train(twin))))
    expected = summarise(twin)
    if mode == "operations":
        plans = [_plan_kills(at, operations) for at in range(operations)]
        wrong = [plan for plan in plans if _killed_at(folder / "victim", plan) != expected]
        return {"kills": sum(map(len, plans)), "wrong": wrong, "rows": len(expected["metrics"])}
    victim = make_run(folder / "victim", **settings)
    kills = _kill_at_moments(victim, pause, count)
    got = summarise(victim)
    return {
        "kills": kills,
        "wrong": [key for key in expected if got[key] != expected[key]],
        "attempts": victim.attempts,
    }


def summarise(run: Run) -> dict[str, Any]:
    """Everything that must not depend on kills."""
    checkpoints = [verify(path) for path in checkpoint_paths(run.checkpoints)]
    hidden = [
        entry.name for entry in run.checkpoints.iterdir() if entry.name.startswith(".") or "corrupt" in entry.name
    ]
    return {
        "state": run.state,
        "metrics": [without_timing(row) for row in read_rows(run.path / METRICS_FILE)],
        "episodes": [without_timing(row) for row in read_rows(run.path / EPISODES_FILE)],
        "anchors": json.loads((run.path / "anchors.json").read_text()),
        "weights": [(each.path / "walk.json").read_text() for each in checkpoints],
        "links": [os.readlink(run.checkpoints / name) for name in ("latest", "best")],
        "leftovers": hidden,
        "damage": [row for row in read_rows(run.path / EVENTS_FILE) if row["kind"] in DAMAGE],
    }


def _plan_kills(operation: int, operations: int) -> list[int]:
    """A kill at that operation; every third time also one early in the resumed run, while it recovers."""
    return [operation, operation * 31 % (operations // 2)] if operation % 3 == 0 else [operation]


def _killed_at(folder: Path, plan: list[int]) -> dict[str, Any]:
    """The outcome after the planned kills and a finish."""
    shutil.rmtree(folder, ignore_errors=True)
    run = make_run(folder, **SMALL)
    for moment in plan:
        _wait(_fork(lambda moment=moment: _die_at(moment, lambda: train(run))))
    saved = _newest_saved(run)
    _wait(_fork(lambda: _die_at(None, lambda: train(run))))
    begun = [row["message"] for row in read_rows(run.path / EVENTS_FILE) if row["attempt"] == run.attempts]
    if saved is not None and not any(message.endswith(saved) for message in begun):
        return {"forgotten": saved, "events": begun}
    return summarise(run)


def _newest_saved(run: Run) -> str | None:
    """The newest checkpoint that was complete when the kill came, be it on its way out of a replacement's way."""
    names = (path.parent.name.removeprefix(".old-") for path in run.checkpoints.glob("*/manifest.json"))
    return max((name for name in names if name.isdigit()), default=None)


def _kill_at_moments(run: Run, pause: float, count: int) -> int:
    chance = random.Random(count)
    kills = 0
    while run.state != "done":
        child = _fork(lambda: _die_at(None, lambda: train(run, pause=pause)))
        if kills < count:
            time.sleep(chance.uniform(0.0, 0.12))
            os.kill(child, signal.SIGKILL)
            kills += 1
        _wait(child)
    return kills


def _die_at(operation: int | None, work: Callable[[], None]) -> int:
    """Do the work, dying at the given file operation; returns how many there were."""
    done = 0

    def dying(original: Callable[..., Any], begin: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            if done == operation:
                if begin is not None:
                    begin(*arguments, **options)
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            return original(*arguments, **options)

        return call

    write = os.write
    for name in OPERATIONS:
        setattr(os, name, dying(getattr(os, name)))
    os.write = dying(write, begin=lambda file, data: write(file, bytes(data)[: len(data) // 2]))
    # Opening for writing empties the file: the moment in which a file replaced in place would be lost.
    builtins.open = dying(open, begin=open)
    work()
    return done


def _fork(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        count = 255
        try:
            count = work()
        finally:
            os._exit(min(count, 255))
    return child


def _wait(child: int) -> int:
    """The exit code of a child: here, the number of operations it did."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))))
