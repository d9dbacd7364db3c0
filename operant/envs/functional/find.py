"""From `env.name` to a functional environment in JAX: registered ones, one's own, and those of libraries.

* `CartPole-v1`: a registered name, see `operant.envs.registry`;
* `my_module:MyEnv`: a subclass of `FunctionalEnv`;
* `gymnax:Breakout-MinAtar`: an environment of gymnax, where that is installed;
* `brax:ant`: an environment of Brax, where that is installed;
* `playground/CheetahRun`: an environment of MuJoCo Playground, where that is installed;
* `mjx/HalfCheetah-v5`: a MuJoCo task of Gymnasium, where MJX is installed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from operant.envs import registry
from operant.envs.environment import Environment, Traits
from operant.errors import UsageError
from operant.install import missing_package
from operant.registry import load

if TYPE_CHECKING:
    from operant.envs.functional.env import FunctionalEnv
    from operant.spec.settings.sections import EnvSpec

# The package that must be there, and our module, of everything whose name begins so.
MJX = "mjx/"
LIBRARIES = {
    "gymnax:": ("gymnax", "operant.envs.functional.gymnax_envs"),
    "brax:": ("brax", "operant.envs.functional.brax_envs"),
    "playground/": ("mujoco_playground", "operant.envs.functional.playground"),
    MJX: ("mujoco.mjx", "operant.envs.functional.mjx_envs"),
}


def find_functional(spec: EnvSpec) -> FunctionalEnv:
    """The environment of a spec; `UsageError` where there is none of that name, or its library is absent."""
    need_jax(f"env.name: {spec.name} in JAX")
    prefix = next((each for each in LIBRARIES if spec.name.startswith(each)), None)
    if prefix is not None:
        return _of_library(prefix, spec)
    path = registry.find(spec.name, "functional")
    if path is None:
        raise _unknown(spec.name)
    env = _made(load(path, "env.name"), spec, registry.declaration(spec.name))
    for trait in ("name", "observation_shape", "actions"):
        if not hasattr(env, trait):
            raise UsageError(f"env.name: {spec.name} has no {trait}", remedy=f"{trait} = ...    (in its class)")
    return env


def steps_on_host(spec: EnvSpec) -> bool:
    """Whether the jax engine steps an environment on the host: one without a JAX form, or as `vectorization` asks."""
    if spec.name.startswith(tuple(LIBRARIES)):
        return False
    ident = spec.name.partition(":")[2]
    if spec.vectorization != "auto" or (ident and not ident.isidentifier()):
        return True
    return registry.declaration(spec.name).functional is None


def in_gymnasium(spec: EnvSpec) -> EnvSpec:
    """Gymnasium's own environment of a task that MJX simulates, with the same spaces, rewards and endings; others stay.

    MJX itself is not needed for it, and it can be drawn. Its `kwargs` would be another solver's.
    """
    if not spec.name.startswith(MJX):
        return spec
    return spec.model_copy(update={"name": spec.name.removeprefix(MJX), "kwargs": {}, "vectorization": "serial"})


def traits_of(spec: EnvSpec) -> Traits:
    """What a learner must know of an environment; where it is declared JAX need not be loaded for it."""
    need_jax(f"env.name: {spec.name} in JAX")
    declared = registry.registered(spec.name) and registry.declaration(spec.name).traits
    if declared and not spec.kwargs:
        return declared
    env = find_functional(spec)
    low, high = getattr(env.actions, "low", 0.0), getattr(env.actions, "high", 0.0)
    return Traits(hasattr(env.actions, "n"), math.isfinite(high - low), env.masked, len(env.observation_shape) == 1)


def need_jax(wanted_by: str) -> None:
    """`UsageError` naming the command that installs JAX, where it is absent."""
    if find_spec("jax") is None:
        raise missing_package("jax", wanted_by)


def _of_library(prefix: str, spec: EnvSpec) -> FunctionalEnv:
    (package, ours), name = LIBRARIES[prefix], spec.name.removeprefix(prefix)
    if not _is_installed(package):
        raise missing_package(package, f"env.name: {spec.name}")
    module = import_module(ours)
    if name not in module.names():
        near = get_close_matches(name, module.names(), n=3, cutoff=0.4) or module.names()[:3]
        raise UsageError(
            f"env.name: {package} has no environment {name!r}", remedy=f"did you mean {' or '.join(near)}?"
        )
    return module.make(name, spec.max_t, dict(spec.kwargs))


def _is_installed(package: str) -> bool:
    """Whether a package is there; one within another cannot be looked for where that is absent."""
    outer = package.rpartition(".")[0]
    return (not outer or find_spec(outer) is not None) and find_spec(package) is not None


def _made(kind: Callable[..., FunctionalEnv], spec: EnvSpec, declared: Environment) -> FunctionalEnv:
    takes = inspect.signature(kind).parameters
    limit = spec.max_t or declared.max_episode_steps
    if spec.max_t is not None and "limit" not in takes:
        raise UsageError(f"env.max_t: {spec.name} takes no `limit`", remedy="a field `limit: int` in its class")
    given = {"name": spec.name, "limit": limit, **declared.kwargs} if limit else {"name": spec.name, **declared.kwargs}
    settings = {name: value for name, value in given.items() if name in takes}
    try:
        return kind(**{**settings, **spec.kwargs})
    except TypeError as problem:
        free = [name for name in takes if name not in ("name", "limit", *declared.kwargs)]
        raise UsageError(
            f"env.kwargs: {spec.name} cannot be made with {dict(spec.kwargs)}: {problem}",
            remedy=f"it takes {', '.join(free)}" if free else "leave env.kwargs out",
        ) from problem


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, registry.names("functional"), n=3, cutoff=0.7)
    known = "classic control, HackMatrix-v0, gymnax:NAME, brax:NAME, playground/NAME and mjx/NAME are in JAX"
    remedy = f"did you mean {' or '.join(near)}?" if near else f"-s engine=torch for Gymnasium's; {known}"
    return UsageError(f"env.name: no functional environment is called {name!r}", remedy=remedy)
