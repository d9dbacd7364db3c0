"""What the next trial tries. Optuna's samplers draw it, made anew for each trial.

The sampler of trial n has a seed that follows from the search's seed and n, and knows the trials told so far and
nothing else. It holds no state between trials, so a search that was killed draws what it would have drawn.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from operant.errors import RunError
from operant.run.seeding import Seeds
from operant.spec.distributions import Distribution
from operant.spec.space import GRID_REMEDY, TRIES, Dimension, Space

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

# The normal distribution is drawn by a uniform number between these quantiles, about 5 deviations on either side.
QUANTILE = 3e-7


@dataclass(frozen=True)
class TrialResult:
    """A trial that the sampler knows; `score` is None while it has none or where it failed.

    `paused_at` are the frames at which a scheduler stopped it so far, None where it was trained to the end.
    """

    settings: Mapping[str, Any]
    score: float | None
    failed: bool = False
    paused_at: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draw:
    """The settings of a new trial by dotted path, and what the sampler asks to keep with them."""

    settings: dict[str, Any]
    attributes: dict[str, Any]


def draw(space: Space, sampler: str, seed: int, number: int, told: Sequence[TrialResult], attempt: int = 0) -> Draw:
    """The settings of trial `number`; a further `attempt` draws others, where the first do not fit together."""
    if sampler == "grid":
        return Draw(grid_point(space, number), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls some of what is used here experimental
        study = _study(space, told)
        study.sampler = _sampler(sampler, Seeds(seed).integer("search", number, attempt))
        study.ask({each.path: optuna_distribution(each.distribution) for each in space})
    drawn = study.trials[-1]
    settings = {each.path: to_setting(each.distribution, drawn.params[each.path]) for each in space}
    return Draw(settings, dict(drawn.system_attrs))


def _sampler(name: str, seed: int) -> BaseSampler:
    from optuna.samplers import CmaEsSampler, RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    if name == "cmaes":
        return CmaEsSampler(seed=seed, consider_pruned_trials=True)
    return TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _study(space: Space, told: Sequence[TrialResult]) -> Study:
    """A study in memory of the trials told so far, as the space is now."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    study.add_trials([trial for each in told if (trial := frozen(space, each)) is not None])
    return study


def frozen(space: Space, told: TrialResult) -> FrozenTrial | None:
    """A trial as Optuna has it; None where it lies outside the space as it is now."""
    from optuna.trial import TrialState, create_trial

    if not all(holds(each.distribution, told.settings.get(each.path)) for each in space):
        return None
    score, frames = told.score, told.paused_at
    paused = {frames: score} if score is not None and frames is not None else {}
    state = TrialState.RUNNING if score is None else TrialState.PRUNED if paused else TrialState.COMPLETE
    return create_trial(
        state=TrialState.FAIL if told.failed else state,
        value=score if state == TrialState.COMPLETE else None,
        intermediate_values=paused or None,
        params={each.path: to_optuna(each.distribution, told.settings[each.path]) for each in space},
        distributions={each.path: optuna_distribution(each.distribution) for each in space},
        system_attrs=dict(told.attributes),
    )


def optuna_distribution(distribution: Distribution) -> BaseDistribution:
    """What Optuna draws from; `to_setting` makes the setting's value of what it draws.

    Multiples of q are drawn as the distribution without q and rounded. A normal distribution, which Optuna lacks, is
    drawn as a uniform quantile. A choice among values that are not all plain and different is one among their indices.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    kind, parameters = distribution.kind, distribution.parameters
    if kind == "choice":
        return CategoricalDistribution(parameters if _is_plain(parameters) else tuple(range(len(parameters))))
    if "normal" in kind:
        return FloatDistribution(QUANTILE, 1 - QUANTILE)
    low, high = parameters[:2]
    if "randint" in kind:
        return IntDistribution(low, high - 1, log="log" in kind)
    return FloatDistribution(low, high, log="log" in kind)


def to_setting(distribution: Distribution, drawn: Any) -> Any:
    """The value of the setting for what Optuna drew."""
    kind, parameters = distribution.kind, distribution.parameters
    if kind == "choice":
        return drawn if _is_plain(parameters) else parameters[drawn]
    if "normal" in kind:
        return distribution.rounded(NormalDist(*parameters[:2]).inv_cdf(drawn))
    low, high = parameters[:2]
    return min(max(distribution.rounded(drawn), low), high)


def to_optuna(distribution: Distribution, value: Any) -> Any:
    """The inverse of `to_setting`, up to rounding."""
    kind, parameters = distribution.kind, distribution.parameters
    if kind == "choice":
        return value if _is_plain(parameters) else parameters.index(value)
    if "normal" in kind:
        return min(max(NormalDist(*parameters[:2]).cdf(value), QUANTILE), 1 - QUANTILE)
    if "randint" in kind:
        return min(int(value), parameters[1] - 1)
    return float(value)


def holds(distribution: Distribution, value: Any) -> bool:
    """Whether a value can be drawn from the distribution."""
    if distribution.kind == "choice":
        return any(value == each and type(value) is type(each) for each in distribution.parameters)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if "normal" in distribution.kind:
        return True
    return distribution.parameters[0] <= value <= distribution.parameters[1]


def grid_point(space: Space, number: int) -> dict[str, Any]:
    """Point `number` of the grid, the last dimension changing quickest; from its end on again from its start."""
    values = [grid_values(each) for each in space]
    size = math.prod(len(each) for each in values)
    point = next(itertools.islice(itertools.product(*values), number % size, None))
    return {each.path: value for each, value in zip(space, point, strict=True)}


def grid_values(dimension: Dimension) -> list[Any]:
    """The values of one dimension in a grid; `RunError` where they cannot be listed."""
    values = dimension.distribution.listed()
    if values is None:
        raise RunError(
            f"a grid cannot list the values of {dimension.path}, which {dimension.distribution.kind} draws from",
            remedy=GRID_REMEDY,
        )
    return values


def none_fits(number: int) -> RunError:
    """The error for a trial of which no draw fits together."""
    return RunError(
        f"none of {TRIES} draws for trial {number} fits together",
        remedy="operant help search    (narrow the space, so that settings agree)",
    )


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether Optuna can tell the values of a choice apart as they are."""
    plain = all(value is None or isinstance(value, bool | int | float | str) for value in values)
    return plain and len(set(values)) == len(values)
