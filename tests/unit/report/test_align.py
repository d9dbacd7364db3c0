from __future__ import annotations

import numpy as np

from operant.report.align import MOST_POINTS, Curve, align, increasing


def curve(points: dict[float, float]) -> Curve:
    return Curve(np.array(list(points), float), np.array(list(points.values()), float))


def test_unknown_values_go_and_the_last_of_equal_positions_stays() -> None:
    found = increasing(np.array([1.0, 1, 2, 3, np.nan]), np.array([5.0, 6, np.nan, 8, 9]))
    np.testing.assert_array_equal(found.x, [1, 3])
    np.testing.assert_array_equal(found.y, [6, 8])


def test_equal_positions_are_kept_exactly() -> None:
    aligned = align([curve({1: 0.1, 2: 0.2}), curve({1: 0.3, 2: 0.7})])
    np.testing.assert_array_equal(aligned.x, [1, 2])
    np.testing.assert_array_equal(aligned.values, [[0.1, 0.2], [0.3, 0.7]])


def test_a_seed_is_unknown_outside_its_range_and_interpolated_inside() -> None:
    aligned = align([curve({0: 0, 2: 20}), curve({1: 5, 3: 7})])
    np.testing.assert_array_equal(aligned.x, [0, 1, 2, 3])
    np.testing.assert_array_equal(aligned.values, [[0, 10, 20, np.nan], [np.nan, 5, 6, 7]])
    np.testing.assert_array_equal(aligned.shared, [False, True, True, False])
    np.testing.assert_array_equal(aligned.present, [True] * 4)


def test_many_positions_are_thinned() -> None:
    x = np.arange(5000.0)
    aligned = align([Curve(x, 2 * x), Curve(x, 3 * x)])
    assert len(aligned.x) == MOST_POINTS
    assert (aligned.x[0], aligned.x[-1]) == (0, 4999)
    np.testing.assert_allclose(aligned.values[1], 3 * aligned.x)


def test_empty_curves_are_left_out() -> None:
    aligned = align([curve({}), curve({4: 1})])
    assert aligned.values.shape == (1, 1)
    assert align([]).values.shape == (0, 0)
