"""Policies as files that run without Operant, each compared with the policy before it is kept."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from operant.api.policy import engine_of_run
from operant.api.runs import BEST, Experiment, Session, Trial, best_score, open_trial
from operant.errors import RunError, UsageError
from operant.run.checkpoint import Checkpoint
from operant.run.layout import shown

if TYPE_CHECKING:
    from operant.policy.array_policy import ArrayPolicy, Recording
    from operant.policy.files import Runner
    from operant.policy.network import Network

FORMATS = ("safetensors", "torchscript", "onnx", "numpy")
TOLERANCE = 1e-5
STEPS, ENVS, SEED = 50, 20, 0  # of play that gives the 1,000 observations


@dataclass(frozen=True)
class Exported:
    """Files that hold a policy, and their largest difference from it: absolute, or relative where outputs exceed 1."""

    path: Path
    files: tuple[Path, ...]
    session: Session
    checkpoint: Checkpoint
    observations: int
    difference: float

    def as_dict(self) -> dict[str, Any]:
        """The document of `operant export --json`."""
        return {
            "file": shown(self.path),
            "files": [shown(file) for file in self.files],
            "session": shown(self.session.path),
            "frames": self.checkpoint.at.frames,
            "observations": self.observations,
            "difference": self.difference,
        }


def export(
    run: str | Path | Trial | Session | Experiment,
    /,
    *,
    to: str,
    out: str | Path | None = None,
    checkpoint: str | int = BEST,
    root: str | Path = "runs",
) -> Exported:
    """Write a policy as safetensors, torchscript, onnx or numpy, normalization and action scaling inside.

    Of several sessions the one with the best evaluation is taken. The file is first run on 1,000 observations of the
    run's environment; it is kept only if it agrees with the policy to 1e-5. `out` is NAME with the format's suffix in
    the working directory by default; nothing is overwritten.
    """
    from operant.policy import files

    if to not in FORMATS:
        raise UsageError(f"there is no format {to!r}", remedy=f"choose one of: {', '.join(FORMATS)}")
    session = max(open_trial(run, root).sessions, key=lambda each: best_score(each.run))
    saved = session.checkpoint(checkpoint)
    path = _new_path(Path(out) if out is not None else Path(session.name), to)
    policy = _array_policy(session, saved)
    network = policy.network()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = files.write(network, to, Path(folder) / path.name)
        recording = policy.record(STEPS, ENVS, SEED)
        difference = compare_with(policy, network, files.load(network, to, written[0]), recording)
        kept = [path.with_name(file.name) for file in written]
        for file, place in zip(written, kept, strict=True):
            shutil.move(file, place)
    return Exported(path, tuple(kept), session, saved, STEPS * ENVS, difference)


def compare_with(policy: ArrayPolicy, network: Network, run: Runner, recording: Recording) -> float:
    """The largest difference of a file's outputs and real actions from the policy's; `RunError` above 1e-5.

    Discrete actions must be the same wherever the best two outputs differ by more than that.
    """
    hidden = np.zeros((recording.obs.shape[1], network.hidden_size), np.float32)
    actions = _actions(policy, recording)
    worst = 0.0
    for t, obs in enumerate(recording.obs):
        hidden = np.where(recording.begun[t][:, None], np.float32(0), hidden)
        mask = None if recording.mask is None else recording.mask[t]
        inputs = [obs, *([hidden] if network.hidden_size else []), *([] if mask is None else [mask])]
        action, output, *after = run(*inputs)
        hidden = after[0] if network.hidden_size else hidden
        expected = policy.outputs(obs, recording.begun[t] if t else np.ones(len(obs), bool))
        worst = max(worst, _difference(output, expected))
        if np.issubdtype(action.dtype, np.integer):
            _same_choices(action, actions[t], expected if mask is None else np.where(mask, expected, -np.inf))
        else:
            worst = max(worst, _difference(action, actions[t]))
    policy.reset()
    if not worst <= TOLERANCE:
        raise RunError(
            f"the exported policy differs from the trained one by {worst:.2g}, more than {TOLERANCE:g}; nothing was"
            " written",
            remedy="another format, or session.policy() in Python",
        )
    return worst


def _actions(policy: ArrayPolicy, recording: Recording) -> list[np.ndarray]:
    """What the policy does at every step."""
    policy.reset()
    actions = []
    for t, obs in enumerate(recording.obs):
        policy.reset(recording.begun[t])
        actions.append(policy.act(obs, mask=None if recording.mask is None else recording.mask[t]))
    return actions


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    apart = np.abs(found.astype(np.float64) - expected) / np.maximum(1, np.abs(expected))
    return float(apart.max(initial=0.0))


def _same_choices(found: np.ndarray, expected: np.ndarray, outputs: np.ndarray) -> None:
    best = np.sort(outputs, -1)[:, -2:].astype(np.float64)
    clear = best[:, -1] - best[:, 0] > 2 * TOLERANCE * np.maximum(1, np.abs(best[:, -1]))
    wrong = int(((found != expected) & (clear | (outputs.shape[-1] == 1))).sum())
    if wrong:
        raise RunError(
            f"the exported policy chooses another action for {wrong} of {len(found)} observations; nothing was written",
            remedy="another format, or session.policy() in Python",
        )


def _array_policy(session: Session, saved: Checkpoint) -> ArrayPolicy:
    from operant.policy.array_policy import ArrayPolicy

    if session.spec.engine_name == "language":
        raise UsageError(
            "a language policy needs no export: its checkpoint is a Hugging Face folder already",
            place=shown(saved.path),
            remedy=f"load that folder, for example with AutoModelForCausalLM.from_pretrained('{shown(saved.path)}')",
        )
    policy = engine_of_run(session.run).load_policy(session.run, saved)
    assert isinstance(policy, ArrayPolicy)
    return policy


def _new_path(path: Path, to: str) -> Path:
    from operant.policy.files import SUFFIXES

    path = path if path.suffix == SUFFIXES[to] else path.with_name(path.name + SUFFIXES[to])
    for file in (path, path.with_suffix(".py")) if to == "numpy" else (path,):
        if file.exists():
            raise UsageError(
                "the file exists already, and nothing is ever overwritten", place=shown(file), remedy="another name"
            )
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", place=shown(path), remedy=f"mkdir -p {path.parent}")
    return path
