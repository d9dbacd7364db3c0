"""n-step returns against the definition, episode by episode, with termination and truncation kept apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.buffers.nstep import NStep

GAMMA = 0.9


def played(num: int, length: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Steps of `num` environments whose observations count 100 i + t, episodes ending in both ways."""
    rng = np.random.default_rng(seed)
    steps = []
    for t in range(length):
        obs = (1000 * np.arange(num) + t).astype(np.float32)[:, None]
        fate = rng.random(num)
        steps.append(
            {
                "obs": obs,
                "action": rng.integers(3, size=num),
                "reward": rng.normal(size=num).astype(np.float32),
                "next_obs": obs + 0.5,
                "terminated": fate < 0.15,
                "truncated": (fate > 0.85),
            }
        )
    return steps


def expected(steps: list[dict[str, np.ndarray]], i: int, t: int, n: int) -> tuple[float, float, bool, float]:
    """Return, last observation, termination and discount of the row begun at step t, from its definition."""
    total, k = 0.0, 0
    while True:
        step = steps[t + k]
        total += GAMMA**k * float(step["reward"][i])
        k += 1
        if step["terminated"][i] or step["truncated"][i] or k == n:
            return total, float(step["next_obs"][i, 0]), bool(step["terminated"][i]), GAMMA**k


def push(lookahead: NStep, step: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return lookahead.push({k: v for k, v in step.items() if k != "truncated"}, step["truncated"])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_rows_are_the_definition(n: int):
    steps = played(num=3, length=60)
    lookahead = NStep(3, n, GAMMA, (1,), np.zeros((), np.int64))
    seen = set()
    for step in steps:
        rows = push(lookahead, step)
        for j in range(len(rows["reward"])):
            i, t = divmod(int(rows["obs"][j, 0]), 1000)
            total, last, terminated, discount = expected(steps, i, t, n)
            assert rows["reward"][j] == pytest.approx(total, abs=1e-5)
            assert (rows["next_obs"][j, 0], rows["terminated"][j]) == (last, terminated)
            assert rows["discount"][j] == pytest.approx(discount)
            assert rows["action"][j] == steps[t]["action"][i]
            seen.add((i, t))
    # Every transition becomes exactly one row, but for those that still wait at the end.
    assert len(seen) >= 3 * (60 - n + 1)
    assert {t for _, t in seen} >= set(range(60 - n + 1))


def test_state_continues_exactly():
    steps = played(num=2, length=40, seed=3)
    one, other = (NStep(2, 4, GAMMA, (1,), np.zeros((), np.int64)) for _ in range(2))
    for step in steps[:17]:
        push(one, step)
    other.restore({name: array.copy() for name, array in one.state().items()})
    for step in steps[17:]:
        first, second = push(one, step), push(other, step)
        assert all(np.array_equal(first[name], second[name]) for name in first)


def test_target_discounts_each_row_by_its_own_span():
    reward, next_q, terminated = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]), np.array([False, True, False])
    discount = np.array([GAMMA**3, GAMMA**2, GAMMA])
    tensors = (torch.from_numpy(a) for a in (reward, terminated, next_q, discount))
    exact = reward + discount * ~terminated * next_q
    np.testing.assert_allclose(losses.q_target(*tensors).numpy(), exact)
