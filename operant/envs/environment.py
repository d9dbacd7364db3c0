"""What can be declared of an environment, by Operant and by packages that register their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Traits:
    """What a learner must know of a functional environment: the kind of its actions, masks, and vector observations."""

    discrete: bool
    bounded: bool = True
    masked: bool = False
    vectors: bool = True


@dataclass(frozen=True)
class Environment:
    """One environment in the forms that it has, each written `module:object`.

    `kwargs` go to its constructor, below those of the spec; `max_episode_steps` is its time limit. `traits` spare a
    check the import of JAX. `replays` is a function of games and a sink that shows whole games instead of frames.
    """

    about: str = ""
    gymnasium: str | None = None
    functional: str | None = None
    task: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_episode_steps: int | None = None
    traits: Traits | None = None
    replays: str | None = None
