"""A trainer small enough to be killed hundreds of times: a random walk with episodes, evaluations and checkpoints.

As a script: `toy_trainer.py RUN [PAUSE]` trains the run to its end, sleeping PAUSE seconds per update.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from operant.errors import OperantError
from operant.run import Episode, Progress, Run
from operant.run.seeding import rng_state
from operant.run.session import Session

FRAMES_PER_UPDATE = 3
WALK_FILE = "walk.json"


def make_spec(max_frame: int = 60, save: int = 20, keep: int = 2) -> dict[str, Any]:
    """A resolved spec with just the fields that the run room reads."""
    meta = {"log_frequency": 5, "eval_frequency": 15, "save_frequency": save, "keep_checkpoints": keep}
    return {"name": "toy", "env": {"name": "walk", "max_frame": max_frame}, "meta": meta}


def make_run(path: Path, **settings: int) -> Run:
    """A new run of the toy."""
    return Run.create(path, name="toy", spec=make_spec(**settings), seed=7, session=0, threads=1)


def train(run: Run, until: int | None = None, pause: float = 0.0) -> None:
    """Walk until the budget is spent, the goal is reached or somebody stops it."""
    with run.session(until) as session:
        state = _start(session)
        at = Progress(**state["at"])
        if "random" not in session.anchors:
            session.anchor("random", session.seeds.integer("anchor"))
        while not session.done(at):
            at = _update(session, state)
            if session.due("log", at):
                session.log(at, {"walk": state["walk"], "perf/rate": time.time()})
            if session.due("eval", at):
                session.log(at, {"eval/score": _evaluate(session, at, "eval", state["walk"])})
            if session.due("save", at):
                _save(session, at, state)
            if pause:
                time.sleep(pause)
        if at.frames >= run.max_frame and not state["finished"]:
            state["finished"] = True
            session.log(at, {"final/score": _evaluate(session, at, "final", state["walk"])})
            _save(session, at, state)


def _start(session: Session) -> dict[str, Any]:
    if session.latest is None:
        return {"walk": 0.0, "rng": rng_state(session.seeds.rng("walk")), "at": {}, "finished": False}
    return json.loads((session.latest.path / WALK_FILE).read_text())


def restored_rng(state: dict[str, Any]) -> np.random.Generator:
    """A generator that continues from `rng_state`."""
    bits = getattr(np.random, state["bit_generator"])(0)
    bits.state = state
    return np.random.Generator(bits)


def _update(session: Session, state: dict[str, Any]) -> Progress:
    rng = restored_rng(state["rng"])
    before = Progress(**state["at"])
    state["walk"] += float(rng.normal())
    finished = rng.random() < 0.4
    at = Progress(
        frames=before.frames + FRAMES_PER_UPDATE,
        updates=before.updates + 1,
        episodes=before.episodes + finished,
        seconds=session.seconds(),
    )
    if finished:
        seed = session.seeds.integer("episode", at.episodes)
        session.episode(Episode("walk", "train", seed, at, state["walk"], at.frames, "terminated"))
    state["rng"] = rng_state(rng)
    state["at"] = {"frames": at.frames, "updates": at.updates, "episodes": at.episodes}
    return at


def _evaluate(session: Session, at: Progress, split: str, walk: float) -> float:
    score = walk + session.seeds.rng(split, at.frames).normal()
    session.episode(Episode("walk", split, at.frames, at, score, 1, "truncated"))
    return score


def _save(session: Session, at: Progress, state: dict[str, Any]) -> None:
    def write(folder: Path) -> None:
        (folder / WALK_FILE).write_text(json.dumps(state))
        (folder / "nested").mkdir()
        (folder / "nested" / "frames.txt").write_text(str(at.frames))

    session.save(at, write, score=round(state["walk"], 1))


if __name__ == "__main__":
    try:
        train(Run.open(Path(sys.argv[1])), pause=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    except OperantError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
