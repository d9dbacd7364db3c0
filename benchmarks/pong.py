"""PPO on Pong for a given time or number of frames: frames per second, learning curve, and what it ran on.

    python -m benchmarks.pong --seconds 600 --out pong       # on the GPU where there is one
    python -m benchmarks.pong --frames 100000 --device cpu --out pong

Writes pong.json and pong.png to the folder. Needs only what the engine needs, with ale-py; packages
that a borrowed machine lacks may come along on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from operant.engines.torch.learners import build_learner, prepare_torch
from operant.engines.torch.loop import Learner
from operant.envs.vector.evaluation import play
from operant.run.seeding import Seeds
from operant.spec.load import load
from operant.spec.schema import Spec

WINDOW = 100
SAYS_EVERY = 15.0  # seconds


def facts(device: torch.device) -> dict[str, Any]:
    """What a rate depends on."""
    return {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
    }


def train(learner: Learner, seconds: float, frames: int) -> list[dict[str, float]]:
    """Iterate until either budget is spent; one row for each finished game."""
    games: list[dict[str, float]] = []
    began = said = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds and learner.tracker.frames < frames:
        over = learner.iterate()
        at = {"frames": learner.tracker.frames, "seconds": time.perf_counter() - began}
        games += [{**at, "score": ended.score, "length": ended.length} for ended in over]
        if now - said > SAYS_EVERY:
            said = now
            print(describe(learner, games, now - began), flush=True)
    return games


def describe(learner: Learner, games: list[dict[str, float]], seconds: float) -> str:
    """One line of progress."""
    recent = [game["score"] for game in games[-WINDOW:]]
    mean = f"{np.mean(recent):6.2f}" if recent else "     -"
    frames = learner.tracker.frames
    return (
        f"{seconds:7.0f} s {frames:11,} frames {frames / seconds:8,.0f} fps   score {mean} (last {len(recent)} games)"
    )


def draw(path: Path, games: list[dict[str, float]], title: str) -> None:
    """Scores of single games, and their running mean, against frames."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    frames, scores = [game["frames"] for game in games], [game["score"] for game in games]
    means = [float(np.mean(scores[max(0, k + 1 - WINDOW) : k + 1])) for k in range(len(scores))]
    axes.plot(frames, scores, ".", markersize=2, alpha=0.3, color="tab:blue", label="game")
    axes.plot(frames, means, color="tab:blue", label=f"mean of the last {WINDOW}")
    axes.set(xlabel="frames (agent steps)", ylabel="score", title=title, ylim=(-22, 22))
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=150)


def measured(spec: Spec, seconds: float, evaluation: int) -> dict[str, Any]:
    """Train and evaluate greedily; everything that is written down."""
    device = prepare_torch(spec, spec.meta.threads or 1)
    learner = build_learner(spec, Seeds(spec.meta.seed), device)
    began = time.perf_counter()
    games = train(learner, seconds, spec.env.max_frame)
    spent = time.perf_counter() - began
    print(describe(learner, games, spent), flush=True)
    played = play(spec.env, learner.actor.greedy, evaluation, spec.meta.eval_seed) if evaluation else ()
    finals = [over.score for over in played]
    return {
        **facts(device),
        "frames": learner.tracker.frames,
        "seconds": spent,
        "frames_per_second": learner.tracker.frames / spent,
        "updates": learner.tracker.updates,
        "greedy_scores": finals,
        "spec": spec.model_dump(mode="json"),
        "games": games,
    }


def main() -> None:
    """Read the command line, train, write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop training after so long")
    parser.add_argument("--frames", type=int, default=10_000_000, help="the budget, over which the learning rate falls")
    parser.add_argument("--spec", default="ppo_atari", help="a spec of an Atari game")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--eval-games", type=int, default=8, help="greedy games at the end")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("-s", dest="overrides", action="append", default=[], help="any setting, as in `operant train`")
    asked = parser.parse_args()
    own = [f"env.max_frame={asked.frames}", f"meta.device={asked.device}"]
    spec = load(asked.spec, None, [*own, *asked.overrides]).spec
    asked.out.mkdir(parents=True, exist_ok=True)
    result = measured(spec, asked.seconds, asked.eval_games)
    (asked.out / "pong.json").write_text(json.dumps(result, indent=1) + "\n")
    rate = f"{result['frames_per_second']:,.0f} frames/s on {result['device']}"
    draw(asked.out / "pong.png", result["games"], f"{spec.name}: {rate}")
    print(f"{rate}; greedy scores {result['greedy_scores']}; written to {asked.out}")


if __name__ == "__main__":
    main()
