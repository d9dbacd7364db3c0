"""Makes a folder of many run directories, for measuring what grows with their number.

    python -m benchmarks.many_runs FOLDER --runs 500 --seeds 4 --rows 500

The directories are written by the package itself (experiments, sessions, rows, checkpoints); only the numbers in them
are made up, from fixed seeds. One in ten is a language run with completions, one a search, one failed, one still empty.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.run.checkpoint import publish
from operant.run.disk import write_json
from operant.run.documents import json_text
from operant.run.episode import Episode, Turn
from operant.run.layout import SEARCH_FILE, provenance_path, session_path, trial_path
from operant.run.metrics import JsonLines
from operant.run.progress import Progress
from operant.run.run import Experiment, Run, create_experiment

ENVS = {"CartPole-v1": (20.0, 500.0), "Acrobot-v1": (-500.0, -85.0), "LunarLander-v3": (-300.0, 250.0)}
ALGORITHMS = ("ppo", "dqn", "a2c", "sac")
LEARNING_RATES = (0.0001, 0.0003, 0.001)
GAMMAS = (0.98, 0.99, 0.995)
ROW_FRAMES = 512
TRIALS = 24
COMPLETIONS_EVERY = 25


@dataclass(frozen=True)
class Size:
    """How many seeds each run has, and how many metric rows each seed."""

    seeds: int
    rows: int


def write_tree(root: Path, runs: int, size: Size) -> Path:
    """Make `runs` experiments below `root`; the same arguments make the same numbers."""
    kept, os.fsync = os.fsync, lambda _: None  # a folder of made-up numbers need not survive a power cut
    try:
        for number in range(runs):
            _write_run(root, number, runs, size)
    finally:
        os.fsync = kept
    return root


def _write_run(root: Path, number: int, runs: int, size: Size) -> None:
    if runs > 2 and number == runs - 1:
        _experiment(root, number, _control_spec(number, Size(1, 1)))  # the newest has nothing to show yet
    elif runs > 2 and number == runs - 2:
        _write_search(root, number, size)
    elif number % 10 == 9:
        spec = _language_spec(number, size)
        _write_trial(_experiment(root, number, spec), 0, spec, size, number)
    else:
        spec = _control_spec(number, size)
        failed = runs > 2 and number == runs - 3
        _write_trial(_experiment(root, number, spec), 0, spec, size, number, "failed" if failed else "done")


def _experiment(root: Path, number: int, spec: dict[str, Any]) -> Experiment:
    """The folder of an experiment, begun a minute after the one before."""
    minutes = number % (60 * 24 * 27)
    day, hour, minute = 1 + minutes // 1440, minutes // 60 % 24, minutes % 60
    out = root / spec["name"] / f"202610{day:02d}-{hour:02d}{minute:02d}00"
    made = create_experiment(
        root, spec, source_text=json.dumps(spec), source_suffix=".json", command=["operant"], out=out
    )
    created = f"2026-10-{day:02d}T{hour:02d}:{minute:02d}:00+00:00"
    write_json(out / "experiment.json", {**made.document, "created": created})
    if number % 7 == 3:
        (out / "tags.json").write_text(json.dumps({"tags": ["baseline"], "archived": False}))
    return made


def _control_spec(number: int, size: Size) -> dict[str, Any]:
    algorithm, env = ALGORITHMS[number % 4], list(ENVS)[number // 4 % 3]
    return {
        "name": f"{algorithm}_{env.partition('-')[0].lower()}",
        "env": {"name": env, "max_frame": ROW_FRAMES * size.rows, "num_envs": 8},
        "agent": {
            "algorithm": {"name": algorithm, "gamma": GAMMAS[number // 36 % 3]},
            "optimizer": {"lr": LEARNING_RATES[number // 12 % 3]},
        },
        "meta": {"max_session": size.seeds, "eval_episodes": 20},
    }


def _language_spec(number: int, size: Size) -> dict[str, Any]:
    spec = _control_spec(number, size)
    spec["env"] = {"name": "gsm8k", "max_frame": ROW_FRAMES * size.rows, "text": {"max_tokens": 256}}
    spec["agent"]["algorithm"] = {"name": "grpo", "group_size": 8, "kl_coef": GAMMAS[number // 36 % 3] - 0.97}
    return {**spec, "name": "grpo_gsm8k"}


def _write_search(root: Path, number: int, size: Size) -> None:
    spec = {**_control_spec(0, size), "name": "ppo_cartpole_search"}
    experiment = _experiment(root, number, spec)
    rng = random.Random(number)
    for trial in range(TRIALS):
        lr, gamma = 10 ** rng.uniform(-4.5, -2.5), round(rng.uniform(0.9, 0.999), 4)
        agent = {"algorithm": {"name": "ppo", "gamma": gamma}, "optimizer": {"lr": lr}}
        strength = max(0.05, 1 - abs(math.log10(lr) + 3.4)) * (gamma - 0.85) / 0.15
        _write_trial(experiment, trial, {**spec, "agent": agent}, Size(1, size.rows), trial, strength=strength)
    settings = ["agent.algorithm.gamma", "agent.optimizer.lr"]
    document = {"settings": settings, "log_scaled": settings[1:], "rungs": [spec["env"]["max_frame"]], "state": "done"}
    write_json(experiment.path / SEARCH_FILE, {"format": 1, "study": "made up", **document})


def _write_trial(
    experiment: Experiment, trial: int, spec: dict[str, Any], size: Size, seed: int, state: str = "done",
    strength: float | None = None,
) -> None:  # fmt: skip
    rng = random.Random(seed)
    strength = 0.4 + 0.6 * rng.random() if strength is None else strength
    for index in range(size.seeds):
        place = session_path(trial_path(experiment.path, trial), index)
        write_session(place, spec, index, rows_of(spec, strength, random.Random(f"{seed} {index}"), size.rows), state)


def write_session(place: Path, spec: dict[str, Any], index: int, rows: Iterator[dict[str, Any]], state: str) -> None:
    """One seed with its rows, a checkpoint, and for a language run some completions."""
    run = Run.create(place, name=spec["name"], spec=spec, seed=index, session=index, threads=1)
    written = list(rows)
    last = Progress.from_dict(written[-1])
    _write_lines(place / "metrics.jsonl", written)
    _write_lines(place / "episodes.jsonl", [each.as_dict() for each in completions(spec, written)])
    third = Progress.from_dict(written[len(written) // 3]).as_dict()
    alert = {"time": run.document["created"], "attempt": 1, "kind": "health", "message": "policy/kl is 0.31", **third}
    _write_lines(place / "events.jsonl", [alert] if index == 0 and spec["env"]["name"] == "LunarLander-v3" else [])
    (place / "anchors.json").write_text(json_text({"random": ENVS.get(spec["env"]["name"], (0.0, 1.0))[0]}))
    provenance_path(place, 1).parent.mkdir()
    provenance_path(place, 1).write_text("{}")
    publish(place / "checkpoints", last, lambda folder: (folder / "weights").write_text("none"))
    run.record(state=state, attempts=1, error="loss is not finite (update 812)" if state == "failed" else None)


def rows_of(spec: dict[str, Any], strength: float, rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Metric rows of a seed that learns: returns rise to a plateau, entropy falls, an evaluation every tenth row."""
    low, high = ENVS.get(spec["env"]["name"], (0.05, 0.9))
    is_language = spec["env"]["name"] not in ENVS
    speed = rng.uniform(4, 9)
    for number in range(1, count + 1):
        part = number / count
        level = low + (high - low) * strength * (1 - math.exp(-speed * part))
        frames = number * ROW_FRAMES
        row: dict[str, Any] = Progress(
            frames, number * 8, frames // 40, frames * 90 if is_language else 0, number * 1.3
        ).as_dict()
        row["train/return"] = round(level + rng.gauss(0, (high - low) * 0.04), 4)
        row["train/length"] = round(180 + 60 * part + rng.gauss(0, 6), 2)
        row |= _losses(part, rng)
        if is_language:
            row |= _language_metrics(part, row["train/return"], rng)
        if number % 10 == 0:
            row["eval/score"] = round(level + rng.gauss(0, (high - low) * 0.02), 4)
        yield row
    yield {**row, "final/score": level, "final/low": low, "final/high": high, "final/episodes": 100}


def _losses(part: float, rng: random.Random) -> dict[str, float]:
    return {
        "loss/policy": round(-0.02 + rng.gauss(0, 0.004), 5),
        "loss/value": round(0.6 * math.exp(-3 * part) + abs(rng.gauss(0, 0.02)), 5),
        "policy/entropy": round(0.68 * math.exp(-1.6 * part) + rng.gauss(0, 0.008), 5),
        "policy/kl": round(abs(rng.gauss(0.012, 0.004)), 5),
        "optim/grad_norm": round(abs(rng.gauss(0.5, 0.1)), 4),
        "perf/frames_per_second": round(rng.gauss(4000, 120), 1),
    }


def _language_metrics(part: float, reward: float, rng: random.Random) -> dict[str, float]:
    return {
        "policy/reference_kl": round(0.4 * part**1.5 + abs(rng.gauss(0, 0.01)), 5),
        "reward/gsm8k": reward,
        "parts/correct": round(max(0.0, reward - 0.1), 4),
        "parts/format": round(min(1.0, 0.3 + part), 4),
        "rollout/truncated": round(max(0.0, 0.4 - part + rng.gauss(0, 0.03)), 4),
        "perf/tokens_per_second": round(rng.gauss(2500, 90), 1),
    }


def completions(spec: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[Episode]:
    """A completion now and then, right more often towards the end."""
    if spec["env"]["name"] in ENVS:
        return
    for number in range(0, len(rows), COMPLETIONS_EVERY):
        a, b, right = 12 + number % 31, 7 + number % 13, number * 2 > len(rows)
        asked = f"Ada sells {a} tickets and then {b} more. How many does she sell?"
        said = f"<think>{a} and {b} make {a + b}.</think>\n#### {a + b if right else a * b}"
        turns = (Turn("user", asked, 18), Turn("assistant", said, 24, reward=float(right)))
        at = Progress.from_dict(rows[number])
        yield Episode(
            "gsm8k", "train", number, at, float(right), 24, "terminated", {"correct": float(right), "format": 1.0},
            turns, item=f"gsm8k/train/{number}", version=at.updates, took=0.8,
        )  # fmt: skip


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    log = JsonLines(path)
    for row in rows:
        log.append(row)
    log.flush()
    log.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make a folder of many run directories.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=500, help="metric rows of each seed")
    given = parser.parse_args()
    write_tree(given.folder, given.runs, Size(given.seeds, given.rows))


if __name__ == "__main__":
    main()
