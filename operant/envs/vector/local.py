"""Environments that are stepped in this process: Atari's in threads of their own, all others one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operant.envs.atari import AtariVectorEnv
from operant.envs.find import plays_natively
from operant.envs.gym import make_env
from operant.envs.vector.base import SyncVectorEnv, VectorEnv

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


def make_local(spec: EnvSpec, num: int) -> VectorEnv:
    """`num` environments of a spec."""
    return AtariVectorEnv(spec, num) if plays_natively(spec) else SyncVectorEnv([make_env(spec) for _ in range(num)])
