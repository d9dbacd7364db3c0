"""Runs a suite of the published table and stores what it gave, greedy and sampled, with intervals.

    python -m benchmarks.suite classic                 # every cell, 4 seeds, the published budgets
    python -m benchmarks.suite box2d --cells ppo_lunar 'a2c*' --jobs 16
    python -m benchmarks.suite mujoco --frames 500000  # a reduced budget, and said so in the results

Each cell is an ordinary run under `runs/suites`, so a stopped suite goes on where it was, and every
number can be traced to its run directory. Results go to `benchmarks/results/suites`, one file a
cell; `python -m benchmarks.tables` writes them into `benchmarks/RESULTS.md`. `--runs` and `--results`
name other places, for settings that are only tried (`python -m benchmarks.variants`).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.suites import SUITES, Cell
from operant.api.handle import POLL_SECONDS
from operant.engines import engine_of
from operant.launch.budget import usable_cores
from operant.launch.local import LocalLauncher
from operant.launch.prepare import create_trial, unfinished
from operant.launch.stop_signals import StopSignals
from operant.launch.trial import SessionJobs
from operant.report.read import SessionRecord, TrialRecord, read_trial
from operant.report.stats import mean_interval
from operant.run.checkpoint import list_checkpoints
from operant.run.run import Run, find_sessions
from operant.spec.load import load
from operant.spec.schema import Spec

RUNS = Path("runs/suites")
RESULTS = Path(__file__).parent / "results" / "suites"
SAMPLED_SEED = 2_000_000


def select(suite: str, patterns: list[str]) -> list[Cell]:
    """The suite's cells whose names match; a pattern that matches none is a mistake."""
    names = [cell.name for cell in SUITES[suite]]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise SystemExit(f"no cell {pattern} in {suite}; there are {', '.join(names)}")
    return [cell for cell in SUITES[suite] if any(fnmatchcase(cell.name, pattern) for pattern in patterns)]


def prepare(cell: Cell, frames: int, seeds: int, overrides: list[str], root: Path = RUNS) -> list[Run]:
    """The cell's runs: those that are there already, or new ones."""
    place = root / f"{cell.name}-{frames}"
    if place.exists():
        return find_sessions(place)
    loaded = load(
        cell.spec, None, [f"env.max_frame={frames}", f"meta.max_session={seeds}", *cell.overrides, *overrides]
    )
    return create_trial(
        loaded.spec.model_dump(mode="json"),
        root=root,
        out=place,
        source_text=loaded.source,
        source_suffix=loaded.suffix,
        command=["python", "-m", "benchmarks.suite", *sys.argv[1:]],
    )


def result(cell: Cell, runs: list[Run], window: int) -> dict[str, Any]:
    """What a finished cell gave."""
    trial = read_trial(runs[0].path.parent)
    greedy = [final.score for session in trial.sessions if (final := session.final()) is not None]
    sampled = [sampled_score(run) for run in runs]
    training = [training_return(session, window) for session in trial.sessions]
    return {
        "cell": cell.name,
        "env": cell.problem.env,
        "column": cell.column,
        "published": cell.published,
        "published_frames": cell.frames,
        "frames": trial.sessions[0].spec["env"]["max_frame"],
        "greedy": {**mean_interval(greedy).as_dict(), "each": greedy},
        "sampled": {**mean_interval(sampled).as_dict(), "each": sampled},
        "total_reward_ma": {**mean_interval(training).as_dict(), "each": training},
        "seconds": [round(session.seconds, 1) for session in trial.sessions],
        **_circumstances(trial),
    }


def sampled_score(run: Run) -> float:
    """Mean return of the last policy when it draws its actions as in training, over as many episodes as greedy."""
    newest = list_checkpoints(run.checkpoints)[-1]
    spec = Spec.model_validate(run.spec)
    played = engine_of(spec).evaluate(run, newest, spec.meta.final_episodes, SAMPLED_SEED, greedy=False)
    scores = [episode.score for episode in played]
    return sum(scores) / len(scores)


def training_return(session: SessionRecord, window: int) -> float:
    """`total_reward_ma` as published: the rows' training returns, averaged over the last `window` frames."""
    series = session.returns()
    return float(series.returns[series.frames > series.frames[-1] - window].mean())


def _circumstances(trial: TrialRecord) -> dict[str, Any]:
    provenance = trial.sessions[0].provenance
    return {
        "commit": (provenance.get("git") or [{}])[0].get("sha"),
        "machine": f"{platform.machine()}, {usable_cores()} cores, Python {platform.python_version()}",
        "device": trial.spec["meta"]["device"],
    }


def store(outcome: dict[str, Any], folder: Path = RESULTS) -> None:
    """Keep one cell's outcome, and say it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{outcome['cell']}.json").write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    print(line(outcome), flush=True)


def line(outcome: dict[str, Any]) -> str:
    """One cell in one line."""
    parts = [f"{kind} {outcome[kind]['point']:.1f}" for kind in ("greedy", "sampled", "total_reward_ma")]
    each = ", ".join(f"{score:.0f}" for score in outcome["greedy"]["each"])
    return f"{outcome['cell']:24} {'  '.join(parts)}  published {outcome['published']}  greedy by seed: {each}"


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cells side by side, and store each that finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--cells", nargs="+", metavar="PATTERN", default=["*"], help="only these (default: all)")
    parser.add_argument("--frames", type=int, help="budget per seed (default: as published)")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="sessions at once (default: one per core)")
    parser.add_argument("--runs", type=Path, default=RUNS, help=f"where the runs are (default: {RUNS})")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results go (default: those of the table)")
    parser.add_argument("-s", dest="overrides", action="append", default=[], metavar="PATH=VALUE")
    chosen = parser.parse_args(arguments)
    cells = select(chosen.suite, chosen.cells)
    runs = [
        (cell, prepare(cell, chosen.frames or cell.frames, chosen.seeds, chosen.overrides, chosen.runs))
        for cell in cells
    ]
    todo = [run for _, group in runs for run in unfinished(group)]
    jobs = SessionJobs(todo, LocalLauncher(), chosen.jobs)
    with StopSignals() as signals:
        while jobs.busy:
            jobs.stop(signals.count)
            jobs.advance()
            time.sleep(POLL_SECONDS)
    for cell, group in runs:
        if unfinished(group):
            print(f"{cell.name:24} not finished: operant resume {group[0].path.parent.parent}", flush=True)
        else:
            store(result(cell, group, cell.problem.window), chosen.results)
    return 1 if any(unfinished(group) for _, group in runs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
