"""An engine without learning: its return is its frame count. It starts in a moment and can be told to fail.

`env.kwargs` may hold `pause` (seconds per update) with `pause_from` (a frame), and `fail_at` (a frame) with
`fail_seed` (a seed). With `native_seconds` the main thread is kept by native code for about so long, at the start or
from the frame `native_from` on; with `deaf` no other thread is let in either. `bonus` is added to scores; so is the
setting of the algorithm that `bonus_of` names.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.expense import Estimate
from operant.run.progress import Progress
from operant.run.run import Run

FRAMES_PER_UPDATE = 10


def validate(spec: Any) -> None:
    """Everything can be played here."""


def estimate(spec: Any) -> Estimate:
    """Round numbers."""
    return Estimate(1234, ["10 updates x 10 samples"], 10, 1000.0, spec.env.max_frame / 1000, 5_000_000)


def train(run: Run, until: int | None = None) -> None:
    """Count frames; log, evaluate and save when due."""
    settings = run.spec["env"]["kwargs"]
    bonus = settings.get("bonus", run.spec["agent"]["algorithm"].get(settings.get("bonus_of"), 0))
    with run.session(until) as session:
        at = session.latest.at if session.latest else Progress()
        session.anchor("random", 0.0)
        if "native_seconds" in settings and "native_from" not in settings:
            with session.phase("compiling"):
                native(settings["native_seconds"], settings.get("deaf", 0))
        while not session.done(at):
            if at.frames == settings.get("native_from", -1):
                native(settings["native_seconds"], 0)
            if at.frames >= settings.get("pause_from", 0):
                time.sleep(settings.get("pause", 0.0))
            at = Progress(at.frames + FRAMES_PER_UPDATE, at.updates + 1, at.episodes + 1, 0, session.seconds())
            if at.frames >= settings.get("fail_at", float("inf")) and run.seed == settings.get("fail_seed", run.seed):
                raise RuntimeError("the toy broke")
            record(session, at, bonus)
        if at.frames >= run.max_frame:
            session.log(at, {"final/score": float(at.frames) + bonus, "final/episodes": 1})


def native(seconds: float, deaf: float) -> None:
    """Keep the main thread in C, where signal handlers of Python do not run."""
    if deaf:
        sum(range(int(seconds * 25_000_000)))
    else:
        hashlib.pbkdf2_hmac("sha256", b"", b"", int(seconds * 700_000))


def record(session: Any, at: Progress, bonus: float) -> None:
    """One update's rows and checkpoint."""
    if session.due("log", at):
        session.log(at, {"train/return": float(at.frames)})
    if session.due("eval", at):
        session.log(at, {"eval/score": float(at.frames) + bonus})
    if session.due("save", at):
        session.save(at, lambda folder: (folder / "frames.json").write_text(json.dumps(at.frames)), float(at.frames))


def evaluate(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, greedy: bool = True) -> Iterator[Episode]:
    """The checkpoint's frame count, plus one for each seed."""
    frames = json.loads((checkpoint.path / "frames.json").read_text())
    for k in range(episodes):
        yield Episode("Toy", "eval", seed + k, checkpoint.at, float(frames + run.seed), 1, "terminated")


def watch(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """A film of no frames."""
    Path(sink).parent.mkdir(parents=True, exist_ok=True)
    Path(sink).write_bytes(b"GIF89a")
    return list(evaluate(run, checkpoint, episodes, seed))
