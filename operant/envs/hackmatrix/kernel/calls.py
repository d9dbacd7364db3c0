"""The kernels as functions of JAX, under every transformation that the engine uses: all leading axes are games."""

from __future__ import annotations

import ctypes
import logging
import os
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.envs.hackmatrix.constants import ACTION_COUNT, OBSERVATION_SIZE, REWARD_PARTS
from operant.envs.hackmatrix.kernel.build import NoKernelError, library
from operant.envs.hackmatrix.rules.state import GAME_WORDS, State
from operant.errors import UsageError

log = logging.getLogger(__name__)

FORMS = ("auto", "kernel", "jax")
VARIABLE = "OPERANT_HACKMATRIX_FORM"
FUNCTIONS = ("mask", "observe", "reset", "step", "advance")
WORDS, HISTORY = 0, 1  # operands that a step changes in place


class Stepped(NamedTuple):
    """What a step came to, of every game."""

    observation: Array
    terminated: Array
    truncated: Array
    reward: Array
    stage: Array
    won: Array
    parts: dict[str, Array]


@cache
def kernel_is_used(form: str) -> bool:
    """Whether programs traced here call the kernels; a form of `auto` is what the environment variable says.

    Both forms give the same bits, so it is no part of a spec. Where nothing is said, the kernels are
    used if they can be had; a log line tells if not.
    """
    wanted = os.environ.get(VARIABLE, "auto") if form == "auto" else form
    if wanted not in FORMS:
        raise UsageError(f"{VARIABLE}: {wanted!r} is no form of the game", remedy=f"{VARIABLE}={'|'.join(FORMS)}")
    if wanted == "jax":
        return False
    try:
        register()
    except NoKernelError as reason:
        if wanted == "kernel":
            raise UsageError(f"{VARIABLE}: no kernel, since {reason}", remedy=f"{VARIABLE}=auto") from reason
        log.warning("HackMatrix is played by its JAX form, which is slower: %s", reason)
        return False
    return True


@cache
def register() -> None:
    """Build the kernels and tell XLA of them, for processors and for the GPU where there is one."""
    platform = jax.default_backend()
    if platform not in ("cpu", "gpu", "cuda"):
        raise NoKernelError(f"there is none for {platform}")
    capability = None if platform == "cpu" else str(getattr(jax.devices()[0], "compute_capability", "unknown"))
    path = library(capability)
    try:
        functions = ctypes.CDLL(str(path))
    except OSError as failed:
        raise NoKernelError(f"{path} cannot be loaded: {failed}") from failed
    _register(functions, "cpu", "cpu")
    if capability is not None:
        _load_on_gpus(functions)
        _register(functions, "cuda", "CUDA")


def _load_on_gpus(functions: ctypes.CDLL) -> None:
    functions.cuda_load.restype = ctypes.c_char_p
    failed = functions.cuda_load(len(jax.local_devices()))
    if failed is not None:
        raise NoKernelError(f"the GPU does not take it: {failed.decode()}")


def _register(functions: ctypes.CDLL, prefix: str, platform: str) -> None:
    for name in FUNCTIONS:
        handler = jax.ffi.pycapsule(getattr(functions, f"{prefix}_{name}"))
        jax.ffi.register_ffi_target(_target(name), handler, platform=platform)


def _target(name: str) -> str:
    return f"operant_hackmatrix_{name}"


def _call(name: str, results: Any, *operands: Array, in_place: tuple[int, ...] = (), **numbers: np.int32) -> Any:
    aliases = {index: index for index in in_place}
    call = jax.ffi.ffi_call(_target(name), results, vmap_method="broadcast_all", input_output_aliases=aliases)
    return call(*operands, **numbers)


def _like(games: tuple[int, ...], dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*games, *shape), dtype)


def mask(words: Array) -> Array:
    """The legal actions of games."""
    return _call("mask", _like(words.shape[:-1], bool, ACTION_COUNT), words)


def observe(words: Array) -> Array:
    """What is seen of games."""
    return _call("observe", _like(words.shape[:-1], jnp.float32, OBSERVATION_SIZE), words)


def reset(key_words: Array) -> tuple[Array, Array]:
    """The words of new games with keys of these words, and what is seen of them."""
    games = key_words.shape[:-1]
    results = (_like(games, jnp.uint32, GAME_WORDS), _like(games, jnp.float32, OBSERVATION_SIZE))
    return _call("reset", results, key_words)


def step(state: State, action: Array, limit: int) -> tuple[State, Stepped]:
    """One step, with a next stage laid out where one was reached."""
    found = _call("step", _results(state, ()), *state, action.astype(jnp.int32), **_in_place(limit))
    return State(*found[:2]), _stepped(found[2:5], found[5:])


def advance(states: State, actions: Array, key_words: Array, limit: int) -> tuple[State, Array, Stepped]:
    """One step, and new games with keys of these words where one is over; and what to act on next.

    The observations of the step itself are from before such a new game.
    """
    seen = _like(states.words.shape[:-1], jnp.float32, OBSERVATION_SIZE)
    operands = (*states, actions.astype(jnp.int32), key_words)
    found = _call("advance", _results(states, (seen,)), *operands, **_in_place(limit))
    return State(*found[:2]), found[5], _stepped(found[2:5], found[6:])


def _in_place(limit: int) -> dict[str, Any]:
    return {"in_place": (WORDS, HISTORY), "limit": np.int32(limit)}


def _results(state: State, more: tuple[jax.ShapeDtypeStruct, ...]) -> list[jax.ShapeDtypeStruct]:
    games = state.words.shape[:-1]
    states = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in state]
    flags = [_like(games, bool)] * 2
    numbers = [_like(games, jnp.float32)] * (3 + len(REWARD_PARTS))
    return [*states, _like(games, jnp.float32, OBSERVATION_SIZE), *flags, *more, *numbers]


def _stepped(first: Any, numbers: Any) -> Stepped:
    seen, terminated, truncated = first
    reward, stage, won, *parts = numbers
    named: dict[str, Array] = dict(zip(REWARD_PARTS, parts, strict=True))
    return Stepped(seen, terminated, truncated, reward, stage, won, named)
