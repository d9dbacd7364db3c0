"""The short spec that the contract is tried on: a spec with a small budget, or one built around somebody's part."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant.envs.registry import declaration
from operant.envs.registry import load as load_part
from operant.errors import UsageError
from operant.spec.fields import Closed
from operant.spec.load import load, load_mapping
from operant.spec.schedules import ScheduleSpec
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.nets import Net

NAME = "contract"
WANTED_BY = "--contract"
BUDGET = "env.max_frame="
FRAMES = 4096
ROUNDS = 12
ROWS = 16
EVALUATIONS = 4
SAVES = 5
EPISODES = 3


PPO = {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}
SMALL_NET = {"hidden": [32, 32]}
TINY_MODEL = {
    "source": "tiny",
    "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 256},
    "optimizer": {"lr": 1e-3},
}
ENVS: dict[str, dict[str, Any]] = {
    "gymnasium": {"env": {"num_envs": 4}, "agent": {"algorithm": PPO, "net": SMALL_NET}},
    "functional": {"engine": "jax", "env": {"num_envs": 4}, "agent": {"algorithm": PPO, "net": SMALL_NET}},
    "task": {"agent": {"algorithm": {"name": "grpo", "group_size": 4, "batch_size": 32}, "model": TINY_MODEL}},
}
"""The spec around an environment, by the form that it has."""
IMAGES = {"name": "ALE/Breakout-v5", "num_envs": 2, "max_t": 200}


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
    """A small spec that trains an outsider's part, of whichever kind it is."""
    found = load_part(target, WANTED_BY)
    if inspect.isfunction(found):
        return {"name": NAME, **ENVS["task"], "env": {"name": "copy", "text": _rewarded_by(target)}}
    settings = found if isinstance(found, type) and issubclass(found, Closed) else getattr(found, "SETTINGS", None)
    if isinstance(settings, type) and issubclass(settings, Algorithm):
        return {"name": NAME, "env": _env_for(settings), "agent": {"algorithm": {"name": target}, "net": SMALL_NET}}
    if isinstance(settings, type) and issubclass(settings, Net):
        env = IMAGES if settings.READS_IMAGES else {"name": "CartPole-v1", "num_envs": 4}
        engine = next(iter(settings.LAYERS), "auto")
        return {"name": NAME, "engine": engine, "env": env, "agent": {"algorithm": PPO, "net": {"type": target}}}
    if isinstance(settings, type) and issubclass(settings, ScheduleSpec):
        algorithm = {"name": "dqn", "training_start": 64, "epsilon": {"name": target}}
        return {"name": NAME, "env": {"name": "CartPole-v1"}, "agent": {"algorithm": algorithm, "net": SMALL_NET}}
    declared = declaration(target, WANTED_BY)
    form = next((form for form in ENVS if getattr(declared, form)), None)
    if form is None:
        raise UsageError(
            f"{WANTED_BY}: {target} is no environment, task, algorithm, network, schedule or reward function",
            remedy="operant new algorithm NAME    (or env, net, task, schedule, reward: writes one to begin with)",
        )
    around = ENVS[form]
    return {"name": NAME, **around, "env": {**around.get("env", {}), "name": target}}


def _rewarded_by(target: str) -> dict[str, Any]:
    return {"arguments": {"style": "bare"}, "max_tokens": 16, "reward_functions": [{"name": target}]}


def _env_for(settings: type[Algorithm]) -> dict[str, Any]:
    """An environment with actions that the algorithm can choose."""
    continuous = getattr(settings, "ACTIONS", "any") == "continuous"
    return {"name": "Pendulum-v1" if continuous else "CartPole-v1", "num_envs": 2}


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
