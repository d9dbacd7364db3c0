"""Trains on a disk that fills up, frees some room, resumes, and reports what was seen as JSON.

`full_disk.py log|save|save_library|start FOLDER`: FOLDER is a small file system of its own; the word says what meets
the full disk.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from toy_trainer import make_run, train

from operant.errors import OperantError
from operant.run import Progress, Run
from operant.run.checkpoint import newest_good, verify
from operant.run.layout import checkpoint_paths


def main(moment: str, folder: Path) -> dict[str, Any]:
    """Meet the full disk, then recover from it."""
    run = make_run(folder / "s")
    train(run, until=30)
    good = verify(checkpoint_paths(run.checkpoints)[-1])
    ballast = folder / "ballast"
    if moment == "start":
        fill(ballast)
    report = meet(moment, run, ballast)
    report["state"], report["error"] = run.state, run.error
    report["still_good"] = newest_good(run.checkpoints) == (good, [])
    report["leftovers"] = [entry.name for entry in run.checkpoints.glob(".*")]
    ballast.unlink()
    train(run)
    report["state_after"] = run.state
    return report


def meet(moment: str, run: Run, ballast: Path) -> dict[str, Any]:
    """Do what cannot be done without room, and return the error as a person would get it."""
    try:
        with run.session() as session:
            fill(ballast)
            at = Progress(frames=33)
            if moment == "save":
                session.save(at, lambda path: path.joinpath("weights.bin").write_bytes(bytes(1 << 20)))
            elif moment == "save_library":
                session.save(at, fail_like_a_library)
            while moment == "log":
                session.log(at, {"text": "x" * 1000})
    except OperantError as error:
        return {**error.as_dict(), "class": type(error).__name__}
    return {}


def fail_like_a_library(folder: Path) -> None:
    """Torch and numpy notice a full disk, too, but do not say so."""
    raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")


def fill(ballast: Path) -> None:
    """Leave not one byte."""
    with open(ballast, "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    assert os.statvfs(ballast).f_bavail == 0


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
