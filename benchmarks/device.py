"""The torch engine on this machine's accelerator: does it learn, at what rate, and is resume exact there too?

    python -m benchmarks.device            # prints one JSON line per algorithm and device

Needs only what the engine needs; packages that a borrowed machine lacks may come along on PYTHONPATH.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from operant.engines import torch as torch_engine
from operant.run.checkpoint import list_checkpoints
from operant.run.metrics import read_rows
from operant.run.run import Run
from operant.spec.load import load

SPECS = {"ppo_cartpole": 60_000, "dqn_cartpole": 24_000}
META = ("meta.eval_frequency=20000", "meta.save_frequency=10000", "meta.final_episodes=50")


def train(folder: Path, name: str, frames: int, device: str, stops: tuple[int, ...]) -> Run:
    """One session, stopped and resumed at each of `stops`."""
    overrides = [f"env.max_frame={frames}", f"meta.device={device}", *META]
    spec = load(name, None, overrides).spec
    run = Run.create(folder, name=name, spec=spec.model_dump(mode="json"), seed=0, session=0, threads=1)
    for until in (*stops, None):
        torch_engine.train(run, until)
    return run


def weights(run: Run) -> bytes:
    """The final policy, byte for byte."""
    return (list_checkpoints(run.checkpoints)[-1].path / "policy.safetensors").read_bytes()


def measure(name: str, frames: int, device: str) -> dict[str, Any]:
    """Train once whole and once in three parts; compare."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        whole = train(Path(folder) / "whole", name, frames, device, ())
        seconds = time.perf_counter() - began
        parts = train(Path(folder) / "parts", name, frames, device, (frames // 3, 2 * frames // 3))
        final = next(row for row in read_rows(whole.path / "metrics.jsonl") if "final/score" in row)
        return {
            "spec": name,
            "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
            "frames": frames,
            "frames_per_second": round(final["frames"] / final["seconds"]),
            "seconds_in_all": round(seconds, 1),
            "final_score": final["final/score"],
            "resumed_equals_whole": weights(parts) == weights(whole),
        }


def main() -> None:
    """Every spec on the CPU, and on the GPU where there is one."""
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for name, frames in SPECS.items():
        for device in devices:
            print(json.dumps(measure(name, frames, device)), flush=True)


if __name__ == "__main__":
    main()
