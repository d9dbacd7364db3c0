"""What a fork tries: the settings of its parent, perturbed. It follows from the seed it is given, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from operant.spec.distributions import Distribution
from operant.spec.space import Space


def perturb(
    space: Space, settings: Mapping[str, Any], factors: Sequence[float], resample_probability: float, seed: int
) -> dict[str, Any]:
    """The settings with each one of the space moved, or with some probability drawn anew from its distribution.

    A number is multiplied by one of the factors, a choice becomes a neighbor in its list; both stay in the space.
    """
    rng = Random(seed)
    moved = dict(settings)
    for dimension in space:
        distribution, value = dimension.distribution, settings[dimension.path]
        is_fresh = rng.random() < resample_probability
        moved[dimension.path] = distribution.draw(rng) if is_fresh else _moved(distribution, value, factors, rng)
    return moved


def _moved(distribution: Distribution, value: Any, factors: Sequence[float], rng: Random) -> Any:
    if distribution.kind == "choice":
        return _neighbor(distribution.parameters, value, rng)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return distribution.draw(rng)
    return _scaled(distribution, value, rng.choice(list(factors)))


def _neighbor(values: Sequence[Any], value: Any, rng: Random) -> Any:
    """The value before or after it in the list; any of them for a value that is not listed."""
    if value not in values:
        return rng.choice(values)
    at = values.index(value)
    near = [values[index] for index in (at - 1, at + 1) if 0 <= index < len(values)]
    return rng.choice(near) if near else value


def _scaled(distribution: Distribution, value: float, factor: float) -> float:
    """The number times the factor, at least one step further where numbers come in steps, within the limits."""
    kind, parameters = distribution.kind, distribution.parameters
    is_whole = "randint" in kind
    product = distribution.rounded(value * factor)
    scaled = round(product) if is_whole else product
    step = parameters[-1] if kind.startswith("q") else 1 if is_whole else 0
    if step and scaled == value and factor != 1:
        scaled = distribution.rounded(value + (step if factor > 1 else -step))
    if "normal" in kind:
        return scaled
    low, high = parameters[:2]
    return min(max(scaled, low), high - 1 if is_whole else high)
