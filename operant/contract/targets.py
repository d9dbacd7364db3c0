"""The short spec that the contract is tried on: a spec with a small budget, or one built around somebody's part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant.envs.registry import WORDS, declaration
from operant.errors import UsageError
from operant.spec.load import load, load_mapping
from operant.spec.schema import Spec

BUDGET = "env.max_frame="
FRAMES = 4096
ROUNDS = 12
ROWS = 16
EVALUATIONS = 4
SAVES = 5
EPISODES = 3


PPO = {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}
SMALL_NET = {"hidden": [32, 32]}
TINY_MODEL = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2}, "optimizer": {"lr": 1e-3}}
PARTS: dict[str, dict[str, Any]] = {
    "gymnasium": {"env": {"num_envs": 4}, "agent": {"algorithm": PPO, "net": SMALL_NET}},
    "functional": {"engine": "jax", "env": {"num_envs": 4}, "agent": {"algorithm": PPO, "net": SMALL_NET}},
    "task": {
        "agent": {"algorithm": {"name": "grpo", "group_size": 4, "batch_size": 32}, "model": TINY_MODEL},
    },
}
"""By the form that a part has: the spec around it, whose environment it becomes."""


def contract_spec(target: str, name: str | None = None, overrides: Sequence[str] = ()) -> Spec:
    """The short spec of a target: a spec by name or file, or a part by `module:Name`.

    A budget that `overrides` ask for (`env.max_frame=...`) is kept as it is.
    """
    loaded = load_mapping(spec_around(target), None, overrides) if is_part(target) else load(target, name, overrides)
    asked = any(text.startswith(BUDGET) for text in overrides)
    return shortened(loaded.spec, loaded.spec.env.max_frame if asked else None)


def is_part(target: str) -> bool:
    """Whether a target is `module:Name`, rather than a spec or FILE:NAME."""
    module, colon, _ = target.rpartition(":")
    return bool(colon) and not Path(module).is_file() and not Path(target).is_file()


def spec_around(target: str) -> dict[str, Any]:
    """A small spec that trains an outsider's part."""
    found = declaration(target, wanted_by="--contract")
    kind = next((kind for kind in PARTS if getattr(found, kind)), None)
    if kind is None:
        kinds = ", ".join(words for words, _ in WORDS.values())
        raise UsageError(f"{target} is no part that can be checked", remedy=f"a part is {kinds}")
    around = PARTS[kind]
    return {"name": "contract", **around, "env": {**around.get("env", {}), "name": target}}


def shortened(spec: Spec, frames: int | None = None) -> Spec:
    """The spec with a budget of a few updates, and rows, evaluations and checkpoints often enough to be disturbed."""
    frames = frames or min(spec.env.max_frame, short_budget(spec))
    meta = {
        "max_session": 1,
        "log_frequency": max(1, frames // ROWS),
        "eval_frequency": max(1, frames // EVALUATIONS),
        "save_frequency": max(1, frames // SAVES),
        "save_minutes": None,
        "eval_episodes": min(EPISODES, spec.meta.eval_episodes),
        "final_episodes": min(EPISODES, spec.meta.final_episodes),
    }
    data: dict[str, Any] = spec.model_dump(mode="json")
    data["env"]["max_frame"] = frames
    data["meta"] |= meta
    data["search"] = None
    return Spec.model_validate(data)


def short_budget(spec: Spec) -> int:
    """Enough frames for several updates of the spec's algorithm."""
    algorithm = spec.agent.algorithm
    horizon = getattr(algorithm, "time_horizon", None) or getattr(algorithm, "training_frequency", None) or 1
    each = getattr(algorithm, "batch_size", 0) if spec.engine_name == "language" else spec.env.num_envs * horizon
    least = 0 if spec.engine_name == "language" else FRAMES
    return (getattr(algorithm, "training_start", 0) or 0) + max(least, ROUNDS * each)
