"""From `env.name` to what Gymnasium makes: its own ids, and environments that live outside this package.

Four forms are understood, and the package is edited for none of them:

* `CartPole-v1`: an id that Gymnasium knows;
* `my_module:Maze-v0`: an id that `my_module` registers when it is imported;
* `my_package.my_module.Maze`: a class by its import path;
* `maze`: a name in the entry-point group `operant.envs` of an installed package.

Modules are looked for where Python looks, and then in the working directory.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as Recipe

from operant.errors import UsageError
from operant.install import install_extra

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

GROUP = "operant.envs"
ATARI = "ALE/"
BRIDGE = "operant/HackMatrixBridge-v0"  # plays by whatever program the user names
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def find(name: str) -> Recipe:
    """The recipe by which Gymnasium makes the environment `name`; `UsageError` if there is none."""
    if name.startswith(ATARI):
        _register_atari(name)
    if name in gym.registry:
        return gym.registry[name]
    if ":" in name:
        return _registered_by(*name.split(":", 1))
    if CLASS_PATH.fullmatch(name):
        return _of_class(name)
    installed = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    if name in installed:
        return _of_class(installed[name].replace(":", "."))
    raise _unknown(name, [*gym.registry, *installed])


def is_own(name: str) -> bool:
    """Whether `name` is an environment of the user's, which nobody else has tested."""
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


def _registered_by(module: str, ident: str) -> Recipe:
    before = set(gym.registry)
    _import(module)
    if ident not in gym.registry:
        new = sorted(set(gym.registry) - before)
        offers = f"it registers {', '.join(new)}" if new else "call gymnasium.register in it"
        raise UsageError(f"env.name: {module} registers no environment called {ident!r}", remedy=offers)
    return gym.registry[ident]


def _of_class(path: str) -> Recipe:
    module_name, _, class_name = path.rpartition(".")
    module = _import(module_name)
    found = getattr(module, class_name, None)
    if found is None:
        near = _nearest(class_name, _environments_in(module))
        raise UsageError(f"env.name: {module_name} has no class {class_name}", remedy=near)
    if not (isinstance(found, type) and issubclass(found, gym.Env)):
        raise UsageError(
            f"env.name: {path} is not a gymnasium.Env",
            remedy=f"class {class_name}(gymnasium.Env): ...    (in its file)",
        )
    return Recipe(id=class_name, entry_point=f"{module_name}:{class_name}")


def _import(name: str) -> ModuleType:
    """The module, which may lie in the working directory; whatever its import raises is told in one line."""
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        # Last, so that a file here never stands in for an installed package.
        sys.path.append(here)
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise _broken(name, missing) from missing
        raise UsageError(
            f"env.name: there is no module {missing.name!r}, neither installed nor in {here}",
            remedy=f"run from the folder that holds {missing.name.partition('.')[0]}, or install its package",
        ) from missing
    except Exception as problem:
        raise _broken(name, problem) from problem


def _broken(module: str, problem: Exception) -> UsageError:
    return UsageError(
        f"env.name: {module} cannot be imported: {type(problem).__name__}: {problem}",
        remedy=f'see where: python -c "import {module}"',
    )


def _environments_in(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, gym.Env)]


def _unknown(name: str, known: list[str]) -> UsageError:
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "any Gymnasium id, such as CartPole-v1"
    return UsageError(f"env.name: no environment is called {name!r}", remedy=remedy)


def missing_family(name: str, cause: Exception | None) -> UsageError:
    """What to say when an environment's package is not installed."""
    reason = f" ({str(cause).splitlines()[0]})" if cause else ""
    return UsageError(f"env.name: {name} needs a package that is not installed{reason}", remedy=install_extra("deep"))


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.0)
    return f"it has {', '.join(near)}" if near else f"write class {name}(gymnasium.Env) in it"
