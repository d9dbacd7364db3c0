"""What a family of environments needs before its episodes depend on nothing but seed and actions."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

import gymnasium as gym

MUJOCO = "gymnasium.envs.mujoco"


class FreshWorld(gym.Wrapper):
    """A Box2D environment whose every episode begins in a new world.

    Destroying all bodies does not empty a `b2World`: the order of its contacts still depends on
    the episodes before, and BipedalWalker then differs in the last bits for the same seed.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        inner: Any = self.env.unwrapped
        inner._destroy()
        inner.world = type(inner.world)(gravity=inner.world.gravity)
        return self.env.reset(seed=seed, options=options)


def behaved(env: gym.Env) -> gym.Env:
    """`env`, wrapped where its family needs it."""
    in_box2d = type(getattr(env.unwrapped, "world", None)).__name__ == "b2World"
    return FreshWorld(env) if in_box2d else env


def calm_mujoco(entry_point: object) -> None:
    """MuJoCo's warnings to the log, not to a file in the working directory; deprecations are not the user's to mend."""
    if "mujoco" not in sys.modules and not str(entry_point).startswith(MUJOCO):
        return

    def tell(message: str) -> None:
        if "deprecated" not in message:
            logging.getLogger(__name__).warning("MuJoCo: %s", message)

    import_module("mujoco").set_mju_user_warning(tell)
