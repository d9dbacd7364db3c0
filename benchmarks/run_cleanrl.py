"""Trains a file of a CleanRL checkout by its own command line, in this process; needs no Operant.

CleanRL asks for gymnasium 0.29 (and numpy below 2), so it runs under a Python of its own. Its files cannot be given
Huber's loss for DQN. The clock covers what lies between the first reset of the environments and their closing.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.clock import Stopwatch, limit_xla
from benchmarks.matched import CELLS, CLEANRL
from benchmarks.same_episodes import KINDS, peer_return

TORCH_FILES = {"ppo": "ppo", "dqn": "dqn", "sac": "sac_continuous_action", "td3": "td3_continuous_action"}
JAX_FILES = {"dqn": "dqn_jax", "td3": "td3_continuous_action_jax"}


def run_cleanrl(name: str, seed: int, steps: int, episodes: int, checkout: Path) -> dict[str, Any]:
    """One of the files in torch."""
    return _run(TORCH_FILES, ["--no-cuda"], name, seed, steps, episodes, checkout)


def run_cleanrl_jax(name: str, seed: int, steps: int, episodes: int, checkout: Path) -> dict[str, Any]:
    """One of the files in JAX."""
    limit_xla()
    return _run(JAX_FILES, [], name, seed, steps, episodes, checkout)


def _run(
    files: dict[str, str], flags: list[str], name: str, seed: int, steps: int, episodes: int, checkout: Path
) -> dict[str, Any]:
    import gymnasium as gym

    cell = CELLS[name]
    file = checkout.resolve() / "cleanrl" / f"{files[cell.algorithm]}.py"
    asked = {"env-id": cell.env, "seed": seed, "total-timesteps": steps, **CLEANRL[name]}
    sys.argv = [str(file), *flags, *(part for key, value in asked.items() for part in _flag(key, value))]
    sys.path.insert(0, str(checkout.resolve()))
    os.chdir(tempfile.mkdtemp())
    clock = _clock_of(gym.vector.SyncVectorEnv)
    with redirect_stdout(sys.stderr):
        trained = runpy.run_path(str(file), run_name="__main__")
    act, world = ACTORS[file.stem](trained), gym.make(cell.env)
    returns = {kind: peer_return(world, partial(act, greedy=greedy), episodes) for kind, greedy in KINDS.items()}
    return {"steps": steps, **clock, **returns}


def _flag(key: str, value: Any) -> list[str]:
    """A setting as the files take it: truth by the flag's name alone."""
    if isinstance(value, bool):
        return [f"--{key}" if value else f"--no-{key}"]
    return [f"--{key}", str(value)]


def _clock_of(envs: type[Any]) -> dict[str, float]:
    """Filled with the seconds from the first reset of such environments to the first closing."""
    found: dict[str, float] = {}
    reset, close, watches = envs.reset, envs.close, []

    def start(*given: Any, **named: Any) -> Any:
        if not watches:
            watches.append(Stopwatch())
        return reset(*given, **named)

    def stop(*given: Any, **named: Any) -> Any:
        if not found:
            found.update(watches[0].read())
        return close(*given, **named)

    envs.reset, envs.close = start, stop
    return found


def _torch_row(observation: Any) -> Any:
    import torch

    return torch.as_tensor(observation, dtype=torch.float32)[None]


def _ppo(trained: dict[str, Any]) -> Callable[..., Any]:
    def act(seen: Any, greedy: bool) -> int:
        row = _torch_row(seen)
        if greedy:
            return int(trained["agent"].actor(row).argmax())
        return int(trained["agent"].get_action_and_value(row)[0])

    return act


def _dqn(trained: dict[str, Any]) -> Callable[..., Any]:
    return _exploring(trained, lambda seen: int(trained["q_network"](_torch_row(seen)).argmax()))


def _dqn_jax(trained: dict[str, Any]) -> Callable[..., Any]:
    import jax

    values, state = jax.jit(trained["q_network"].apply), trained["q_state"]
    return _exploring(trained, lambda seen: int(values(state.params, seen).argmax()))


def _exploring(trained: dict[str, Any], best: Callable[[Any], int]) -> Callable[..., Any]:
    """Sampled play of DQN explores as at the end of training, which is how the other peers' does."""
    import numpy as np

    random, space = np.random.default_rng(0), trained["envs"].single_action_space

    def act(seen: Any, greedy: bool) -> int:
        explores = not greedy and random.random() < trained["args"].end_e
        return int(random.integers(space.n)) if explores else best(seen)

    return act


def _sac(trained: dict[str, Any]) -> Callable[..., Any]:
    def act(seen: Any, greedy: bool) -> Any:
        sampled, _, mean = trained["actor"].get_action(_torch_row(seen))
        return (mean if greedy else sampled).detach().numpy()[0]

    return act


def _td3(trained: dict[str, Any]) -> Callable[..., Any]:
    return lambda seen, greedy: trained["actor"](_torch_row(seen)).detach().numpy()[0]


def _td3_jax(trained: dict[str, Any]) -> Callable[..., Any]:
    import jax
    import numpy as np

    choose, state = jax.jit(trained["actor"].apply), trained["actor_state"]
    return lambda seen, greedy: np.asarray(choose(state.params, seen[None]))[0]


ACTORS = {
    "ppo": _ppo,
    "dqn": _dqn,
    "dqn_jax": _dqn_jax,
    "sac_continuous_action": _sac,
    "td3_continuous_action": _td3,
    "td3_continuous_action_jax": _td3_jax,
}
"""By file: what plays one observation with the names that the file leaves behind."""
