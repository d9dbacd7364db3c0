"""One Gymnasium environment from a spec, with what its family needs to depend on nothing but seed and actions."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.spaces import Box

from operant.envs.atari import AtariEnv
from operant.envs.find import find, is_own, plays_natively, register_builtin
from operant.envs.vector.base import is_image

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

MUJOCO = "gymnasium.envs.mujoco"

register_builtin()


def make_env(spec: EnvSpec, render_mode: str | None = None) -> gym.Env:
    """One environment by its name; an observation that is neither vector nor image is flattened to one real vector."""
    if plays_natively(spec):
        return AtariEnv(spec, render_mode)
    options = dict(spec.kwargs)
    if render_mode is not None:
        options["render_mode"] = render_mode
    if spec.max_t is not None:
        options["max_episode_steps"] = spec.max_t
    recipe = find(spec.name)
    log_mujoco_warnings(recipe.entry_point)
    env = reset_by_seed(gym.make(recipe if is_own(spec.name) else spec.name, disable_env_checker=True, **options))
    is_vector = isinstance(env.observation_space, Box) and len(env.observation_space.shape) == 1
    return env if is_vector or is_image(env.observation_space) else gym.wrappers.FlattenObservation(env)


def observation_shape(env: gym.Env) -> tuple[int, ...]:
    """Shape of one observation."""
    shape = env.observation_space.shape
    assert shape is not None, "make_env flattens every other space"
    return shape


class FreshBox2d(gym.Wrapper):
    """A Box2D environment whose every episode begins with a new `b2World`.

    Destroying all bodies does not empty a `b2World`: the order of its contacts still depends on
    the episodes before, and BipedalWalker then differs in the last bits for the same seed.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        inner: Any = self.env.unwrapped
        inner._destroy()
        inner.world = type(inner.world)(gravity=inner.world.gravity)
        return self.env.reset(seed=seed, options=options)


def reset_by_seed(env: gym.Env) -> gym.Env:
    """`env`, wrapped where its family needs it."""
    in_box2d = type(getattr(env.unwrapped, "world", None)).__name__ == "b2World"
    return FreshBox2d(env) if in_box2d else env


def log_mujoco_warnings(entry_point: object) -> None:
    """MuJoCo's warnings to the log, not to a file in the working directory; deprecations are left out."""
    if "mujoco" not in sys.modules and not str(entry_point).startswith(MUJOCO):
        return

    def log(message: str) -> None:
        if "deprecated" not in message:
            logging.getLogger(__name__).warning("MuJoCo: %s", message)

    import_module("mujoco").set_mju_user_warning(log)
