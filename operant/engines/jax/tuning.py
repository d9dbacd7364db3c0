"""How many environments a device plays quickest: measured, since neither too few nor too many are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from operant.engines.jax.cost import measure
from operant.errors import UsageError
from operant.spec.reading.document import put
from operant.spec.schema import Spec
from operant.spec.settings.ppo import ProximalAlgorithm
from operant.spec.settings.sections import MAX_ENVS

FEWEST = 64
WORTH = 1.1


@dataclass(frozen=True)
class Tried:
    """A number of environments, the overrides that ask for it, and the frames per second that it gave."""

    num_envs: int
    overrides: tuple[str, ...]
    frames_per_second: float


def tune(spec: Spec) -> Iterator[Tried]:
    """Train for a second with 64, 128, ... environments, until a doubling gains less than a tenth or does not fit."""
    before, num = 0.0, FEWEST
    while num <= MAX_ENVS:
        changes = changes_for(spec, num)
        try:
            rate = measure(changed(spec, changes)).frames_per_second
        except RuntimeError as full:
            if "RESOURCE_EXHAUSTED" not in str(full):
                raise
            return
        yield Tried(num, tuple(f"{path}={value}" for path, value in changes.items()), rate)
        if rate < WORTH * before:
            return
        before, num = rate, 2 * num


def changes_for(spec: Spec, num_envs: int) -> dict[str, int]:
    """Settings with another number of environments and as many minibatches in an update as before."""
    algorithm = spec.agent.algorithm
    if not isinstance(algorithm, ProximalAlgorithm):
        raise UsageError(
            f"tuning is for PPO; {algorithm.name} takes its gradient steps by the number of environments",
            remedy="operant check SPEC -s env.num_envs=N    (shows the frames per second)",
        )
    parts = spec.env.num_envs * algorithm.time_horizon // algorithm.minibatch_size
    samples = num_envs * algorithm.time_horizon
    fitting = next(count for count in range(min(parts, samples), 0, -1) if samples % count == 0)
    return {"env.num_envs": num_envs, "agent.algorithm.minibatch_size": samples // fitting}


def changed(spec: Spec, changes: dict[str, int]) -> Spec:
    """The spec with these settings, checked again."""
    document = spec.model_dump(mode="json")
    for path, value in changes.items():
        document = put(document, tuple(path.split(".")), value)
    return Spec.model_validate(document)
