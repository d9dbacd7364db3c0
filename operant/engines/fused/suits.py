"""Whether this engine can run a spec; what it has not got is refused before any work, and never left unread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from operant.engines.fused.learners import LEARNERS
from operant.engines.fused.optimise import KNOWN
from operant.engines.fused.program import prepare_jax
from operant.envs.find_functional import find_functional
from operant.envs.functional import Continuous, Discrete, FunctionalEnv
from operant.errors import UsageError
from operant.spec.misfit import setting
from operant.spec.schema import Spec

OWN = "the compiled program steps its environments itself"
# For each setting the values that this engine has, and why it has no others.
ALWAYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "agent.algorithm.name": (tuple(LEARNERS), "it has these algorithms only"),
    "agent.net.type": (("mlp",), "its networks are perceptrons"),
    "agent.net.optimizer.name": (KNOWN, "it has these optimisers only"),
    "agent.net.optimizer.scheduler": ((None,), "it has no schedulers of torch: use lr_end_fraction"),
    "agent.net.optimizer.amsgrad": ((False,), "its Adam is the plain one"),
    "agent.net.optimizer.centered": ((False,), "its RMSprop is the plain one"),
    "agent.net.optimizer.dampening": ((0.0,), "its momentum is the plain one"),
    "env.vectorization": (("auto",), OWN),
    "meta.processes": ((1,), "it shares work among devices: meta.devices"),
    "meta.threads": ((None,), "XLA shares the cores out itself"),
    "meta.compile": ((False,), "it is compiled always"),
}
REPLAYING = {
    "agent.memory.name": (("replay",), "it samples replay uniformly"),
    "agent.memory.combined": ((False,), "it samples replay uniformly"),
    "env.normalize_reward": ((False,), "it scales rewards of rollouts only: use clip_reward"),
}
OF_ALGORITHM: dict[str, dict[str, tuple[tuple[Any, ...], str]]] = {
    "ppo": {
        "agent.algorithm.normalize_advantages": (("standardise", "none"), "it keeps no percentiles"),
        "agent.algorithm.symlog": ((False,), "its critic learns returns as they are"),
        "agent.algorithm.normalize_v_targets": ((False,), "its critic learns returns as they are"),
    },
    "dqn": {
        **REPLAYING,
        "agent.algorithm.n_step": ((1,), "its targets look one step ahead"),
        "agent.algorithm.distributional": (("none",), "it learns means"),
        "agent.algorithm.exploration": (("epsilon_greedy",), "it explores by chance"),
    },
    "sac": REPLAYING,
}


def check_suits(spec: Spec) -> None:
    """`UsageError` for a setting or a problem that this engine cannot take, or a device that is not there."""
    for refusal in (*unsupported(spec), *unsuited(spec, find_functional(spec.env))):
        raise refusal
    prepare_jax(spec)


def unsupported(spec: Spec) -> Iterator[UsageError]:
    """Settings that this engine has not got, each with the values that it has."""
    algorithm = spec.agent.algorithm.name
    for path, (known, why) in {**ALWAYS, **OF_ALGORITHM.get(algorithm, {})}.items():
        value = setting(spec, path)
        if value not in known:
            offer = " or ".join(_written(each) for each in known)
            yield UsageError(
                f"{path}: the fused engine cannot take {_written(value)}: {why}",
                remedy=f"-s {path}={_written(known[0])}{f'    (or {offer})' if len(known) > 1 else ''}, or -s engine=deep",
            )


def unsuited(spec: Spec, env: FunctionalEnv) -> Iterator[UsageError]:
    """What does not fit the problem, or the number of devices."""
    name, actions = spec.agent.algorithm.name, env.actions
    if name == "dqn" and not isinstance(actions, Discrete):
        yield UsageError(
            f"agent.algorithm: dqn chooses among discrete actions, but {env.name} has real ones",
            remedy="-s agent.algorithm.name=ppo, or an environment with discrete actions",
        )
    if name == "sac" and isinstance(actions, Continuous) and not math.isfinite(actions.high - actions.low):
        yield UsageError(
            f"agent.algorithm: sac needs bounds to act within, but those of {env.name} are infinite",
            remedy="-s agent.algorithm.name=ppo, or an environment with bounded actions",
        )
    if env.masked and not spec.agent.algorithm.TAKES_MASKS:
        yield UsageError(
            f"agent.algorithm: {env.name} says which actions are legal, and {name} does not listen",
            remedy="-s agent.algorithm.name=ppo, which does; so does dqn",
        )
    if len(env.observation_shape) != 1:
        yield UsageError(f"env.name: {env.name} has observations of shape {env.observation_shape}, not vectors")
    yield from _shares(spec)


def _shares(spec: Spec) -> Iterator[UsageError]:
    """Every device has as many environments as the others, and as much of each minibatch."""
    devices, algorithm = spec.meta.devices, spec.agent.algorithm
    sizes = {"env.num_envs": spec.env.num_envs}
    if hasattr(algorithm, "scaled"):
        sizes["agent.algorithm.minibatch_size"] = algorithm.scaled(spec.env.num_envs)[0]
    if spec.agent.memory is not None:
        sizes["agent.memory.batch_size"] = spec.agent.memory.batch_size
    for path, size in sizes.items():
        if size % devices:
            raise UsageError(
                f"meta.devices: {devices} devices cannot have equal shares of {path} = {size}",
                remedy=f"-s {path}={-(-size // devices) * devices}, or -s meta.devices={math.gcd(size, devices)}",
            )
    yield from ()


def _written(value: Any) -> str:
    """A value as YAML writes it."""
    return {None: "null", True: "true", False: "false"}.get(value, str(value)) if not isinstance(value, float) else f"{value:g}"
