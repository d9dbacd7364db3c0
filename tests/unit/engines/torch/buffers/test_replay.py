"""Replay memories: the ring, prioritised sampling with importance weights, exact state."""

from __future__ import annotations

import numpy as np
import pytest

from operant.engines.torch.buffers.replay import Priorities, Replay
from operant.spec.settings.memories import PrioritisedReplaySpec, ReplaySpec


def rows(first, count):
    number = np.arange(first, first + count, dtype=np.float32)
    return {
        "obs": number[:, None],
        "next_obs": number[:, None] + 0.5,
        "action": number.astype(np.int64),
        "reward": number,
        "terminated": number % 2 == 0,
    }


@pytest.mark.parametrize(
    "spec", [ReplaySpec(batch_size=64, max_size=10), PrioritisedReplaySpec(batch_size=64, max_size=10)]
)
def test_ring_keeps_the_newest_and_rows_stay_together(spec):
    replay = Replay(spec, (1,), np.zeros((), np.int64))
    for first in range(0, 24, 4):
        replay.add(**rows(first, 4))
    batch = replay.sample(np.random.default_rng(0), beta=0.4)
    assert set(batch.reward.tolist()) == set(range(14, 24))
    assert np.array_equal(batch.obs[:, 0], batch.reward)
    assert np.array_equal(batch.next_obs[:, 0], batch.reward + 0.5)
    assert np.array_equal(batch.action, batch.reward)
    assert np.array_equal(batch.terminated, batch.reward % 2 == 0)


def test_only_filled_rows_are_sampled():
    replay = Replay(ReplaySpec(batch_size=256, max_size=1000), (1,), np.zeros((), np.int64))
    replay.add(**rows(1, 3))
    assert set(replay.sample(np.random.default_rng(0), 0.0).reward.tolist()) == {1, 2, 3}


@pytest.mark.parametrize("kind", [ReplaySpec, PrioritisedReplaySpec])
@pytest.mark.parametrize("combined", [True, False])
def test_combined_batches_always_have_the_newest_transition(kind, combined):
    replay = Replay(kind(batch_size=4, max_size=1000, combined=combined), (1,), np.zeros((), np.int64))
    rng, found = np.random.default_rng(0), []
    for first in range(0, 1400, 7):
        replay.add(**rows(first, 7))
        batch = replay.sample(rng, 0.4)
        found.append(first + 6 in batch.reward)
        assert batch.weight is None or np.isfinite(batch.weight).all()
    assert all(found) == combined


def test_discounts_are_kept_with_their_rows():
    replay = Replay(ReplaySpec(batch_size=32, max_size=10), (1,), np.zeros((), np.int64), discounts=True)
    replay.add(**rows(1, 5), discount=np.arange(1, 6, dtype=np.float32) / 10)
    batch = replay.sample(np.random.default_rng(0), 0.0)
    assert batch.discount is not None
    np.testing.assert_allclose(batch.discount, batch.reward / 10)


def test_frequencies_follow_priorities_and_weights_undo_them():
    errors = np.array([0.1, 0.5, 1.0, 4.0])
    priorities = Priorities(capacity=4, alpha=0.7, epsilon=1e-6)
    priorities.add(np.arange(4))
    priorities.update(np.arange(4), errors)
    index = priorities.draw(np.random.default_rng(0), 200_000, filled=4)
    weight = priorities.weights(index, filled=4, beta=1.0)
    share = np.bincount(index, minlength=4) / len(index)
    expected = (errors + 1e-6) ** 0.7 / ((errors + 1e-6) ** 0.7).sum()
    np.testing.assert_allclose(share, expected, atol=2e-3)
    # With beta 1 the weighted mean of any quantity is its uniform mean, up to the common scale.
    each = np.bincount(index, weights=weight, minlength=4)
    np.testing.assert_allclose(each / each.sum(), 0.25, atol=5e-3)
    assert weight.max() == pytest.approx(1.0)


def test_new_transitions_get_the_largest_priority():
    priorities = Priorities(capacity=100, alpha=1.0, epsilon=1e-6)
    priorities.add(np.arange(50))
    priorities.update(np.arange(50), np.full(50, 0.01))
    priorities.update(np.array([3]), np.array([9.0]))
    priorities.add(np.array([50]))
    index = priorities.draw(np.random.default_rng(0), 10_000, filled=51)
    counts = np.bincount(index, minlength=51)
    assert counts[50] == pytest.approx(counts[3], rel=0.1)
    assert counts[50] > 100 * counts[10] / 2


def test_never_samples_an_unfilled_leaf():
    priorities = Priorities(capacity=1000, alpha=0.6, epsilon=1e-6)
    priorities.add(np.arange(37))
    index = priorities.draw(np.random.default_rng(1), 50_000, filled=37)
    weight = priorities.weights(index, filled=37, beta=0.4)
    assert index.max() < 37
    assert np.isfinite(weight).all()


@pytest.mark.parametrize("spec", [ReplaySpec(max_size=50), PrioritisedReplaySpec(max_size=50)])
def test_state_continues_exactly(spec):
    replay = Replay(spec, (1,), np.zeros((), np.int64))
    replay.add(**rows(0, 30))
    replay.add(**rows(30, 30))
    if replay.priorities is not None:
        replay.priorities.update(np.arange(20), np.linspace(0, 3, 20))
    twin = Replay(spec, (1,), np.zeros((), np.int64))
    twin.restore({name: array.copy() for name, array in replay.state().items()})
    for memory in (replay, twin):
        memory.add(**rows(60, 7))
    a, b = (m.sample(np.random.default_rng(4), 0.5) for m in (replay, twin))
    assert np.array_equal(a.index, b.index)
    assert np.array_equal(a.reward, b.reward)
    assert [batch.weight is None for batch in (a, b)] == [replay.priorities is None] * 2
    if a.weight is not None and b.weight is not None:
        assert np.array_equal(a.weight, b.weight)
