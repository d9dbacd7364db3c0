"""Settings of reward functions, which score completions beside a task's verifier or in its place.

An own reward function is a plain function in a file of yours. Its parameters say what it wants to see (`INPUTS`); all
others are its settings, which a spec may give:

    def brevity(completion: str, score: float, *, target: int = 200) -> float: ...

With the plural names (`BATCH_INPUTS`) it gets lists, of all completions to one problem, and returns a list of numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Literal, get_type_hints

from pydantic import Field, create_model
from pydantic.errors import PydanticSchemaGenerationError

from operant.errors import UsageError
from operant.registry import load
from operant.spec.fields import Closed, free
from operant.spec.registry import PartRegistry

PLACE = "env.text.reward_functions"
INPUTS = ("prompt", "completion", "answer", "conversation", "length", "score")
"""What a reward function may ask for; see `operant.envs.text.rewards.RewardInput`."""
BATCH_INPUTS = ("prompts", "completions", "answers", "conversations", "lengths", "scores")
RESERVED = ("verifier", "reward")
"""Names in the record of episodes that no reward function may have."""


class RewardSpec(Closed):
    """The base of every reward function's settings (abstract).

    `FUNCTION` is the function, or its `module:function`.
    """

    FUNCTION: ClassVar[Any] = None

    name: Any  # each reward function narrows it to its own Literal
    weight: float = free(default=1.0, ge=-1e6, le=1e6, description="Factor of its value in the reward.")
    label: str | None = free(
        default=None,
        min_length=1,
        max_length=100,
        description="What it is called in episodes and metrics; null for its name.",
    )

    @property
    def part(self) -> str:
        """What it is called in the record."""
        return self.label or str(self.name).rpartition(":")[2]

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        own = type(self).FUNCTION
        return load(own, PLACE) if isinstance(own, str) else own

    def arguments(self) -> dict[str, Any]:
        """Its own settings, as the function takes them."""
        return self.model_dump(exclude={"name", "weight", "label"})


class RegexSpec(RewardSpec):
    """1 where the completion matches a regular expression, else 0: a reward for the form of an answer."""

    FUNCTION = "operant.envs.text.rewards:regex"

    name: Literal["regex"] = free(default="regex", description="Reward function.")
    pattern: str = free(
        min_length=1,
        max_length=10_000,
        description="Regular expression of the whole completion; a dot is any character.",
    )


class SoftOverlongSpec(RewardSpec):
    """0 up to a length in tokens, then down to -1 in a straight line (DAPO, Yu et al., 2025)."""

    FUNCTION = "operant.envs.text.rewards:soft_overlong"

    name: Literal["soft_overlong"] = free(default="soft_overlong", description="Reward function.")
    max_length: int = free(ge=1, le=10**6, description="Tokens from which on it is -1.")
    buffer: int = free(ge=1, le=10**6, description="Tokens before `max_length` at which it begins to fall.")


def settings_from(function: Callable[..., Any], path: str) -> type[RewardSpec]:
    """The settings class of a function: a field for each parameter that is no input."""
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{PLACE}: {path} is async, and reward functions are called in turn", remedy="def, not async")
    parameters = inspect.signature(function).parameters
    wanted_inputs(function, path)
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as problem:  # annotations of others may name anything
        raise UsageError(f"{PLACE}: the types of {path} cannot be read: {problem}") from problem
    own = {name: one for name, one in parameters.items() if _is_setting(one)}
    taken = next((name for name in own if name in RewardSpec.model_fields), None)
    if taken is not None:
        raise UsageError(f"{PLACE}: the parameter {taken} of {path} is a setting of every reward function already")
    fields: dict[str, Any] = {name: _field(name, one, hints, path) for name, one in own.items()}
    try:
        settings: Any = create_model(function.__name__, __base__=RewardSpec, **fields)
    except (PydanticSchemaGenerationError, TypeError) as problem:
        raise UsageError(f"{PLACE}: {path} has a setting of a type that no file can hold: {problem}") from problem
    settings.FUNCTION, settings.__doc__ = staticmethod(function), function.__doc__ or "An own reward function."
    return settings


def wanted_inputs(function: Callable[..., Any], path: str) -> tuple[tuple[str, ...], bool]:
    """The inputs that a function asks for, and whether those are the lists of a batch; `UsageError` for others."""
    parameters = inspect.signature(function).parameters.values()
    asked = [one for one in parameters if one.kind not in (one.VAR_KEYWORD,) and not _is_setting(one)]
    names = tuple(one.name for one in asked)
    unknown = next(
        (one for one in asked if one.name not in INPUTS + BATCH_INPUTS or one.kind == one.POSITIONAL_ONLY), None
    )
    if unknown is not None:
        raise UsageError(
            f"{PLACE}: {path} asks for {unknown.name}, which no completion has",
            remedy=f"{', '.join(INPUTS)}; their plurals for a batch; or a setting with a default",
        )
    batch = [name for name in names if name in BATCH_INPUTS]
    if not names or 0 < len(batch) < len(names):
        problem = f"asks for both {names[0]} and {names[-1]}" if names else "asks for nothing that was written"
        raise UsageError(
            f"{PLACE}: {path} {problem}",
            remedy="def NAME(prompt, completion, answer), or (prompts, completions, answers) for lists",
        )
    return names, bool(batch)


def _is_setting(parameter: inspect.Parameter) -> bool:
    named = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY)
    has_default = parameter.default is not parameter.empty or parameter.kind == parameter.KEYWORD_ONLY
    return named and has_default and parameter.name not in INPUTS + BATCH_INPUTS


def _field(name: str, parameter: inspect.Parameter, hints: dict[str, Any], path: str) -> tuple[Any, Any]:
    """The field of a setting: its type by annotation, or by its default."""
    default = ... if parameter.default is parameter.empty else parameter.default
    if name not in hints and (default is ... or default is None):
        raise UsageError(f"{PLACE}: {path} does not say what type {name} has", remedy=f"{name}: float, for example")
    annotation = hints.get(name, type(default))
    return annotation, Field(default=default)


REWARDS = PartRegistry(
    f"{PLACE}.name",
    RewardSpec,
    {"regex": RegexSpec, "soft_overlong": SoftOverlongSpec},
    kind="reward",
    from_function=settings_from,
)
