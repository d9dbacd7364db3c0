"""Replay of images inside the program: every frame is stored once, as bytes, and observations are put together again.

A stack of four frames shares three of them with the next one, and a transition's successor is the observation of the
transition after it. So each environment has a ring of single frames: one per step, and the whole first stack where an
episode begins, so that no observation reaches into another episode.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.engines.jax.priorities import weighted_draw
from operant.engines.jax.replay import Replay, Transition, empty_actions
from operant.envs.functional.env import FunctionalEnv


class FrameBuffer(NamedTuple):
    """Rings [N, C, ...] of frames and of what followed them, and where each ring is written next [N].

    The observation of the transition in slot c are the frames that end at c, and its successor those that end at
    c + 1. `ready` says where there is one whose frames are all there.
    """

    frame: Array
    action: Array
    reward: Array
    terminated: Array
    ready: Array
    following: Array


class FrameReplay(Replay):
    """Frames of `count` environments, `size` in all; an observation is a `stack` of them, or a single one."""

    def __init__(self, env: FunctionalEnv, count: int, size: int, stack: int) -> None:
        self._env, self._count, self._stack = env, count, stack
        self.length = max(size // count, 2 * stack + 1)

    def init(self) -> FrameBuffer:
        slots, shape = (self._count, self.length), self._env.observation_shape
        frame = shape if self._stack == 1 else shape[1:]
        return FrameBuffer(
            jnp.zeros((*slots, *frame), jnp.uint8),
            empty_actions(self._env, slots),
            jnp.zeros(slots),
            jnp.zeros(slots, bool),
            jnp.zeros(slots, bool),
            jnp.zeros(self._count, jnp.int32),
        )

    def add(self, buffer: FrameBuffer, step: Transition, begun: Array | None) -> tuple[FrameBuffer, Array]:
        assert begun is not None, "environments on the host say where episodes begin"
        env, stack = jnp.arange(self._count), self._stack
        first, after = (self._frames_of(x) for x in (step.observation, step.next_observation))
        frames = jnp.concatenate([first, after[:, -1:]], 1)
        # Only the first observation of an episode is written whole; what is not written has the slot `length`.
        number = jnp.arange(stack + 1)
        place = (buffer.following[:, None] + number - jnp.where(begun, 0, stack)[:, None]) % self.length
        place = jnp.where(begun[:, None] | (number == stack), place, self.length)
        slot, following = (place[:, -1] - 1) % self.length, (place[:, -1] + 1) % self.length
        return FrameBuffer(
            buffer.frame.at[env[:, None], place].set(frames, mode="drop"),
            buffer.action.at[env, slot].set(step.action),
            buffer.reward.at[env, slot].set(step.reward),
            buffer.terminated.at[env, slot].set(step.terminated),
            self._overwritten(buffer.ready, place).at[env, slot].set(True),
            following,
        ), slot

    def _overwritten(self, ready: Array, place: Array) -> Array:
        """What is ready still, when these places are written: no observation that has one of them among its frames."""
        env = jnp.arange(self._count)[:, None, None]
        part = (place[..., None] + jnp.arange(self._stack)) % self.length
        part = jnp.where(place[..., None] < self.length, part, self.length)
        return ready.at[env, part].set(False, mode="drop")

    def _frames_of(self, observation: Array) -> Array:
        return observation[:, None] if self._stack == 1 else observation

    def ready(self, buffer: FrameBuffer) -> Array:
        return buffer.ready

    def draw(self, buffer: FrameBuffer, bits: Array) -> Array:
        count = buffer.ready.astype(jnp.int32)
        mass = (bits.reshape(-1) % count.sum().astype(jnp.uint32)).astype(jnp.int32)
        return weighted_draw(count, mass).reshape(bits.shape)

    def take(self, buffer: FrameBuffer, index: Array) -> Transition:
        env, slot = index // self.length, index % self.length
        seen, after = (self._observation(buffer, env, end) for end in (slot, slot + 1))
        return Transition(seen, buffer.action[env, slot], buffer.reward[env, slot], after, buffer.terminated[env, slot])

    def _observation(self, buffer: FrameBuffer, env: Array, end: Array) -> Array:
        """The stacks of frames that end in these slots."""
        if self._stack == 1:
            return buffer.frame[env, end % self.length]
        slots = (end[..., None] + jnp.arange(1 - self._stack, 1)) % self.length
        return buffer.frame[env[..., None], slots]
