from __future__ import annotations

import jax
import numpy as np
import pytest

from operant.engines.jax.shuffle import SORTED, shuffled


@pytest.mark.parametrize(
    "rows",
    [
        7,
        1024,
        SORTED,
        96 * 128,
        8191,
        *(pytest.param(rows, marks=pytest.mark.slow) for rows in (2 * SORTED, 16 * 8191)),
    ],
)
def test_every_row_comes_once_in_each_order(rows: int):
    orders = np.asarray(shuffled(jax.random.key(1), 3, rows))
    assert orders.shape == (3, rows)
    assert (np.sort(orders, -1) == np.arange(rows)).all()
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], np.arange(rows))


def test_every_order_of_few_rows_comes_equally_often():
    orders = np.asarray(shuffled(jax.random.key(3), 24_000, 4))
    found, times = np.unique(orders, axis=0, return_counts=True)
    assert len(found) == 24
    assert np.abs(times - 1000).max() < 5 * np.sqrt(1000)


@pytest.mark.parametrize("rows", [512, SORTED, pytest.param(1 << 16, marks=pytest.mark.slow)])
def test_where_rows_land_looks_like_chance(rows: int):
    orders = np.asarray(shuffled(jax.random.key(2), 8, rows)).astype(np.float64)
    place = orders / rows
    # Uniform numbers: a mean of 1/2 in every eighth of the order, and no echo of the neighbour.
    blocks = place.reshape(8, 8, -1).mean(-1)
    np.testing.assert_allclose(blocks, 0.5, atol=5 / np.sqrt(12 * rows / 8))
    for lag in (1, 2, int(np.sqrt(rows))):
        echo = [np.corrcoef(one[:-lag], one[lag:])[0, 1] for one in place]
        assert np.abs(echo).max() < 5 / np.sqrt(rows)
