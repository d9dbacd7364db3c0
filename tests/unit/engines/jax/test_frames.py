"""Replay of images: what is put together from single frames is what was played, and nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax.frames import FrameReplay
from operant.engines.jax.host.env import HostEnv
from operant.engines.jax.replay import Transition
from operant.envs.functional.env import Discrete

NUM, STEPS = 3, 120
Step = tuple[Transition, np.ndarray]


def played(stack: int, seed: int) -> Iterator[Step]:
    """Steps of environments whose every frame is unlike all others; a lost life ends an episode but not its frames."""
    rng = np.random.default_rng(seed)
    count = iter(range(10**6))

    def frame() -> np.ndarray:
        return np.array([divmod(next(count), 256)], np.uint8)

    def fresh() -> deque[np.ndarray]:
        return deque([frame() for _ in range(stack)], maxlen=stack)

    stacks, begun = [fresh() for _ in range(NUM)], np.ones(NUM, bool)
    for _ in range(STEPS):
        seen = np.stack([np.stack(each) for each in stacks])
        for each in stacks:
            each.append(frame())
        after = np.stack([np.stack(each) for each in stacks])
        over, lost = rng.random(NUM) < 0.15, rng.random(NUM) < 0.1
        if stack == 1:
            seen, after = seen[:, 0], after[:, 0]
        action, reward = rng.integers(4, size=NUM), rng.normal(size=NUM).astype(np.float32)
        arrays: Any = (seen, action, reward, after, over | lost)
        yield Transition(*arrays), begun
        stacks, begun = [fresh() if over[i] else each for i, each in enumerate(stacks)], over


def listed(transitions: Transition) -> list[bytes]:
    arrays = [np.asarray(x, float) for x in transitions[:5]]
    return [b"|".join(x[i].tobytes() for x in arrays) for i in range(len(arrays[1]))]


@pytest.mark.parametrize("stack", [1, 4])
def test_transitions_are_those_that_were_played_and_the_newest_of_them(stack: int):
    shape = (1, 2) if stack == 1 else (stack, 1, 2)
    replay = FrameReplay(HostEnv("frames", shape, True, Discrete(4), None, stack=stack), NUM, 40 * NUM, stack)
    buffer, add, take, everything = replay.init(), jax.jit(replay.add), jax.jit(replay.take), set()
    slots = jnp.arange(NUM * replay.length)
    for step, begun in played(stack, seed=stack):
        buffer, slot = jax.device_get(add(buffer, step, begun))
        newest = set(listed(step))
        everything |= newest
        index = np.flatnonzero(replay.ready(buffer))
        kept = {row for row, ready in zip(listed(take(buffer, slots)), buffer.ready.reshape(-1), strict=True) if ready}
        assert len(kept) == len(index), "none is there twice"
        assert kept <= everything
        assert newest <= kept
        assert buffer.ready[np.arange(NUM), slot].all()
    assert buffer.frame.nbytes == 40 * NUM * 2, "every frame is stored once"
    # A ring of 40 frames loses some to first stacks, and those of the oldest observations are incomplete.
    assert len(index) > 40 * NUM / (1 + 0.15 * stack) - NUM * (2 * stack + 4)


def test_all_that_are_ready_are_drawn_equally_often():
    replay = FrameReplay(HostEnv("frames", (4, 1, 2), True, Discrete(4), None, stack=4), NUM, 40 * NUM, 4)
    buffer, add = replay.init(), jax.jit(replay.add)
    for step, begun in played(4, seed=0):
        buffer, _ = add(buffer, step, begun)
    drawn = replay.draw(buffer, jax.random.bits(jax.random.key(0), (100, 500)))
    assert drawn.shape == (100, 500)
    ready = np.asarray(replay.ready(buffer)).reshape(-1)
    counts = np.bincount(np.asarray(drawn).reshape(-1), minlength=len(ready))
    assert not counts[~ready].any()
    expected = 50_000 / ready.sum()
    assert np.abs(counts[ready] - expected).max() < 5 * expected**0.5
