"""Checks that an environment can be built and stepped, before any work starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from operant.envs.find import is_own, missing_family
from operant.envs.gym import make_env
from operant.envs.vector.masks import MaskReader
from operant.errors import OperantError, UsageError

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


def check_env(spec: EnvSpec) -> gym.Env:
    """Build the environment once, and play a step of one that is the user's own; `UsageError` says what is wrong."""
    env = _build(spec)
    if is_own(spec.name):
        _try_out(env, spec.name)
    return env


def _build(spec: EnvSpec) -> gym.Env:
    try:
        return make_env(spec)
    except UsageError:
        raise
    except (ModuleNotFoundError, gym.error.DependencyNotInstalled) as missing:
        raise missing_family(spec.name, missing) from missing
    except (gym.error.Error, ImportError) as problem:
        raise UsageError(f"env.name: {spec.name}: {problem}", remedy="operant help env") from problem
    except TypeError as problem:
        raise _refused_arguments(spec, problem) from problem
    except Exception as problem:
        if not is_own(spec.name):
            raise
        raise UsageError(f"env.name: {spec.name} cannot be built: {type(problem).__name__}: {problem}") from problem


def _refused_arguments(spec: EnvSpec, problem: TypeError) -> UsageError:
    reason = str(problem).partition(" was raised from")[0]
    known = f"see what it takes: python -c \"import gymnasium as g; help(g.make('{spec.name}').unwrapped)\""
    return UsageError(
        f"env.kwargs: {spec.name} does not accept {spec.kwargs}: {reason}",
        remedy="see the __init__ of its class" if is_own(spec.name) else known,
    )


def _try_out(env: gym.Env, name: str) -> None:
    """Two resets with one seed and one step: the mistakes that first environments have."""
    try:
        first, info = env.reset(seed=1)
        mask = MaskReader([env]).one(0, info)
        _refuse_outsider(env, name, first)
        again, _ = env.reset(seed=1)
        _refuse_chance(name, first, again)
        env.action_space.seed(1)
        action = env.action_space.sample(None if mask is None else mask.astype(np.int8))
        after, reward, *_, info = env.step(action)
        float(reward)
        _refuse_outsider(env, name, after)
    except UsageError:
        raise
    except OperantError as problem:
        raise UsageError(f"env.name: {name}: {problem.cause}", remedy=problem.remedy) from problem
    except Exception as problem:
        raise UsageError(
            f"env.name: {name} cannot be played: {type(problem).__name__}: {problem}",
            remedy="reset(seed=..., options=...) returns (observation, info), and step(action)"
            " (observation, reward, terminated, truncated, info)",
        ) from problem
    if not isinstance(info, dict):
        raise UsageError(f"env.name: the last value of {name}.step is {info!r}, not a dict")


def _refuse_chance(name: str, first: Any, again: Any) -> None:
    if not np.array_equal(np.asarray(first), np.asarray(again), equal_nan=True):
        raise UsageError(
            f"env.name: {name} ignores its seed: two resets with seed 1 gave different observations",
            remedy="call super().reset(seed=seed) first in reset, and draw from self.np_random alone",
        )


def _refuse_outsider(env: gym.Env, name: str, observation: Any) -> None:
    space, found = env.observation_space, np.asarray(observation)
    if found.shape != space.shape:
        raise UsageError(
            f"env.name: {name} gave an observation of shape {found.shape}, but its observation_space is {space}"
        )
