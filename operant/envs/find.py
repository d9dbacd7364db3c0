"""From `env.name` to what Gymnasium makes: its own ids, and every environment that has a Gymnasium form.

* `CartPole-v1`: an id that Gymnasium knows;
* `my_module:Maze-v0`: an id that `my_module` registers when it is imported;
* `my_module:Maze`, `my_package.my_module.Maze`: a class, or a function that makes an environment;
* `maze`: a registered name, see `operant.envs.registry`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as Recipe

from operant.envs import registry
from operant.errors import UsageError
from operant.install import install_extra
from operant.registry import import_from_here

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

ATARI = "ALE/"
BRIDGE = "operant/HackMatrixBridge-v0"  # plays by whatever program the user names
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def register_builtin() -> None:
    """Make Operant's own environments known to Gymnasium; harmless when repeated."""
    for name in registry.BUILTIN:
        declared = registry.declaration(name)
        if declared.gymnasium and name not in gym.registry:
            limit, kwargs = declared.max_episode_steps, dict(declared.kwargs)
            gym.register(name, entry_point=declared.gymnasium, max_episode_steps=limit, kwargs=kwargs)


def find(name: str) -> Recipe:
    """The recipe by which Gymnasium makes the environment `name`; `UsageError` if there is none."""
    if name.startswith(ATARI):
        _register_atari(name)
    if name in gym.registry:
        return gym.registry[name]
    if CLASS_PATH.fullmatch(name):
        name = ":".join(name.rsplit(".", 1))
    module, _, ident = name.partition(":")
    if ident:
        before = set(gym.registry)
        import_from_here(module, "env.name")
        if ident in gym.registry:
            return gym.registry[ident]
        if not ident.isidentifier():
            raise _not_registered(module, ident, sorted(set(gym.registry) - before))
    path = registry.find(name, "gymnasium")
    if path is None:
        raise _unknown(name)
    declared = registry.declaration(name)
    limit, kwargs = declared.max_episode_steps, dict(declared.kwargs)
    return Recipe(id=ident or name, entry_point=path, max_episode_steps=limit, kwargs=kwargs)


def is_own(name: str) -> bool:
    """Whether `name` is an environment of the user's, which has been tested nowhere else."""
    return name == BRIDGE or (name not in gym.registry and not name.startswith(ATARI))


def plays_natively(spec: EnvSpec) -> bool:
    """Whether this is an Atari game in its usual form; one with an `obs_type` goes through plain Gymnasium instead."""
    return spec.name.startswith(ATARI) and "obs_type" not in spec.kwargs


def _register_atari(name: str) -> None:
    """Gymnasium knows the games once their package is imported."""
    try:
        import_module("ale_py")
    except ModuleNotFoundError as missing:
        raise missing_family(name, missing) from missing


def missing_family(name: str, cause: Exception | None) -> UsageError:
    """What to say when an environment's package is not installed."""
    reason = f" ({str(cause).splitlines()[0]})" if cause else ""
    return UsageError(f"env.name: {name} needs a package that is not installed{reason}", remedy=install_extra("deep"))


def _not_registered(module: str, ident: str, new: list[str]) -> UsageError:
    offers = f"it registers {', '.join(new)}" if new else "call gymnasium.register in it"
    return UsageError(f"env.name: {module} registers no environment called {ident!r}", remedy=offers)


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, [*gym.registry, *registry.names("gymnasium")], n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "any Gymnasium id, such as CartPole-v1"
    return UsageError(f"env.name: no environment is called {name!r}", remedy=remedy)
