"""What a finished cell gave, kept as one JSON file: scores of every seed with intervals, and how they came about.

The file is the record: tables and comparisons are made from it, long after the run directories are gone. Keys are
only ever added, and files that were written before a key came are read without it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant import __version__
from operant.benchmark.suite import Cell
from operant.engines import engine_of
from operant.errors import OperantError, RunError, UsageError
from operant.launch.budget import usable_cores
from operant.report.read import SessionRecord, TrialRecord, read_trial
from operant.report.stats import mean_interval
from operant.run.checkpoint import list_checkpoints
from operant.run.disk import write_text
from operant.run.layout import shown
from operant.run.run import Run
from operant.spec.stored import stored

Outcome = dict[str, Any]
SCORES = ("greedy", "sampled", "total_reward_ma")
LOG_ROWS = 100
SAMPLED_SEED = 2_000_000
PROBLEM = ("max_t", "kwargs", "text")  # settings of env that make it another problem


def outcome(
    suite: str, cell: Cell, budget: int, overrides: Sequence[str], settings_sha256: str, runs: Sequence[Run], run: str
) -> Outcome:
    """What the finished runs of a cell gave; `budget` is the suite's, and `run` is how the results name them."""
    trial = read_trial(runs[0].path.parent)
    spec = trial.spec
    window = cell.window or LOG_ROWS * spec["meta"]["log_frequency"]
    greedy = [final_score(session) for session in trial.sessions]
    training = [value for session in trial.sessions if (value := training_return(session, window)) is not None]
    return {
        "suite": suite,
        "cell": cell.name,
        "spec": spec["name"],
        "set": [*(f"{path}={value}" for path, value in cell.settings.items()), *overrides],
        "settings_sha256": settings_sha256,
        "env": spec["env"]["name"],
        "problem": problem(spec),
        "column": cell.column or spec["agent"]["algorithm"]["name"],
        "published": cell.published,
        "published_frames": budget,
        "measure": cell.measure,
        "source": cell.source,
        "frames": spec["env"]["max_frame"],
        "seeds": [session.seed for session in trial.sessions],
        "greedy": scored(greedy),
        "sampled": scored([sampled_score(each) for each in runs]),
        "total_reward_ma": scored(training) if len(training) == len(runs) else None,
        "seconds": [round(session.seconds, 1) for session in trial.sessions],
        "run": run,
        **_circumstances(trial),
    }


def scored(values: Sequence[float]) -> dict[str, Any]:
    """The mean over seeds with its interval, and the value of each seed."""
    return {**mean_interval(values).as_dict(), "each": list(values)}


def problem(spec: dict[str, Any]) -> dict[str, Any]:
    """The settings that must be equal for scores to be comparable, beside environment and budget."""
    env = {key: value for key in PROBLEM if (value := spec["env"].get(key)) not in (None, {})}
    return {**env, "final_episodes": spec["meta"]["final_episodes"]}


def final_score(session: SessionRecord) -> float:
    """The mean return of the greedy policy at the end of the budget."""
    final = session.final()
    if final is None:
        raise RunError(
            "the session has no final score", place=shown(session.path), remedy=f"operant show {session.path}"
        )
    return final.score


def sampled_score(run: Run) -> float:
    """Mean return of the last policy when it draws its actions as in training, over as many episodes as greedy."""
    newest = list_checkpoints(run.checkpoints)[-1]
    spec = stored(run.spec)
    played = engine_of(spec).evaluate(run, newest, spec.meta.final_episodes, SAMPLED_SEED, greedy=False)
    scores = [episode.score for episode in played]
    return sum(scores) / len(scores)


def training_return(session: SessionRecord, window: int) -> float | None:
    """`total_reward_ma`: the rows' training returns, averaged over the last `window` frames; None without any."""
    series = session.returns()
    if not len(series.frames):
        return None
    return float(series.returns[series.frames > series.frames[-1] - window].mean())


def _circumstances(trial: TrialRecord) -> dict[str, Any]:
    provenance = trial.sessions[0].provenance
    return {
        "version": __version__,
        "commit": (provenance.get("git") or [{}])[0].get("sha"),
        "machine": f"{platform.machine()}, {usable_cores()} cores, Python {platform.python_version()}",
        "device": trial.spec["meta"]["device"],
    }


def store(result: Outcome, folder: Path) -> None:
    """Keep a cell's outcome."""
    write_text(folder / f"{result['cell']}.json", json.dumps(result, indent=1) + "\n")


def read_outcome(folder: Path, cell: str) -> Outcome | None:
    """A cell's outcome; None where there is none, `UsageError` for a file that is not one."""
    file = folder / f"{cell}.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        raise _not_a_result(file, str(fault)) from None
    if not isinstance(found, dict) or not {"cell", "frames", "greedy"} <= set(found):
        raise _not_a_result(file, "it has no cell, frames and greedy")
    return found


def _not_a_result(file: Path, why: str) -> OperantError:
    return UsageError(f"this is not a result of a cell: {why}", place=shown(file), remedy="move it away")
