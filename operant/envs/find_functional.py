"""From `env.name` to a problem in JAX: our own by the name that Gymnasium gives them, others by their library.

* `CartPole-v1` and the rest of classic control, the probes, and `HackMatrix-v0`: in this package;
* `gymnax:Breakout-MinAtar`: an environment of gymnax, where that is installed;
* `brax:ant`: an environment of Brax, where that is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    from operant.envs.functional import FunctionalEnv
    from operant.spec.settings.sections import EnvSpec

PROBE = "operant/Probe"
OURS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "CartPole-v0": ("operant.envs.classic", "CartPole", {"limit": 200}),
    "CartPole-v1": ("operant.envs.classic", "CartPole", {}),
    "Acrobot-v1": ("operant.envs.classic_acrobot", "Acrobot", {}),
    "MountainCar-v0": ("operant.envs.classic", "MountainCar", {}),
    "MountainCarContinuous-v0": ("operant.envs.classic", "MountainCarContinuous", {}),
    "Pendulum-v1": ("operant.envs.classic", "Pendulum", {}),
    "HackMatrix-v0": ("operant.envs.hackmatrix.rules.env", "HackMatrixEnv", {}),
    **{
        f"{PROBE}{kind.capitalize()}-v0": ("operant.envs.functional_probe", "FunctionalProbe", {"kind": kind})
        for kind in ("constant", "observation", "discount", "action", "both")
    },
}


@dataclass(frozen=True)
class Facts:
    """The kind of a problem's actions, whether it says which are legal, and whether its observations are vectors."""

    discrete: bool
    bounded: bool = True
    masked: bool = False
    vectors: bool = True


PLAIN = {
    **dict.fromkeys(("CartPole-v0", "CartPole-v1", "Acrobot-v1", "MountainCar-v0"), Facts(discrete=True)),
    **dict.fromkeys(("MountainCarContinuous-v0", "Pendulum-v1"), Facts(discrete=False)),
    "HackMatrix-v0": Facts(discrete=True, masked=True),
}
LIBRARIES = {"gymnax": "operant.envs.functional_gymnax", "brax": "operant.envs.functional_brax"}


def find_functional(spec: EnvSpec) -> FunctionalEnv:
    """The problem of a spec; `UsageError` where there is none of that name, or its library is absent."""
    need_jax(f"env.name: {spec.name} in JAX")
    library, _, name = spec.name.partition(":")
    if name and library in LIBRARIES:
        return _of_library(library, name, spec)
    if spec.name not in OURS:
        raise _unknown(spec.name)
    module, kind, settings = OURS[spec.name]
    limit = {} if spec.max_t is None else {"limit": spec.max_t}
    return _made(getattr(import_module(module), kind), spec, {"name": spec.name, **settings, **limit})


def facts_of(spec: EnvSpec) -> Facts:
    """What a learner must know of a problem; of a plain one of ours JAX need not be loaded for it."""
    need_jax(f"env.name: {spec.name} in JAX")
    if spec.name in PLAIN and not spec.kwargs:
        return PLAIN[spec.name]
    env = find_functional(spec)
    low, high = getattr(env.actions, "low", 0.0), getattr(env.actions, "high", 0.0)
    return Facts(hasattr(env.actions, "n"), math.isfinite(high - low), env.masked, len(env.observation_shape) == 1)


def need_jax(wanted_by: str) -> None:
    """`UsageError` naming the command that installs JAX, where it is absent."""
    if find_spec("jax") is None:
        raise missing_package("jax", wanted_by)


def _of_library(library: str, name: str, spec: EnvSpec) -> FunctionalEnv:
    if find_spec(library) is None:
        raise missing_package(library, f"env.name: {spec.name}")
    module = import_module(LIBRARIES[library])
    if name not in module.names():
        near = get_close_matches(name, module.names(), n=3, cutoff=0.4) or module.names()[:3]
        raise UsageError(
            f"env.name: {library} has no environment {name!r}", remedy=f"did you mean {' or '.join(near)}?"
        )
    return module.make(name, spec.max_t, dict(spec.kwargs))


def _made(kind: Callable[..., FunctionalEnv], spec: EnvSpec, settings: dict[str, Any]) -> FunctionalEnv:
    try:
        return kind(**{**settings, **spec.kwargs})
    except TypeError as problem:
        takes = [name for name in getattr(kind, "__dataclass_fields__", {}) if name not in ("name", "limit", "kind")]
        raise UsageError(
            f"env.kwargs: {spec.name} cannot be made with {dict(spec.kwargs)}: {problem}",
            remedy=f"it takes {', '.join(takes)}" if takes else "leave env.kwargs out",
        ) from problem


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, OURS, n=3, cutoff=0.7)
    known = "classic control, HackMatrix-v0, gymnax:NAME and brax:NAME are in JAX"
    remedy = f"did you mean {' or '.join(near)}?" if near else f"-s engine=torch for Gymnasium's; {known}"
    return UsageError(f"env.name: no environment in JAX is called {name!r}", remedy=remedy)
