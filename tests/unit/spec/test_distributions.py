from __future__ import annotations

import math
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest

from operant.spec.distributions import ABOUT, PARAMETERS, Distribution, fault_in

DRAWS = 4000


def draws(kind: str, *parameters: Any) -> list[Any]:
    rng = Random(1)
    return [Distribution(kind, parameters).draw(rng) for _ in range(DRAWS)]


def test_uniform_fills_its_interval() -> None:
    values = draws("uniform", 2.0, 4.0)
    assert 2 <= min(values) < 2.01
    assert 3.99 < max(values) <= 4
    assert fmean(values) == pytest.approx(3, abs=0.05)


def test_loguniform_is_as_likely_in_each_decade() -> None:
    values = draws("loguniform", 1e-4, 1e-2)
    assert min(values) >= 1e-4
    assert max(values) <= 1e-2
    assert fmean(math.log10(value) for value in values) == pytest.approx(-3, abs=0.05)


def test_randint_leaves_the_upper_end_out() -> None:
    assert set(draws("randint", 1, 5)) == {1, 2, 3, 4}


def test_lograndint_prefers_small_numbers() -> None:
    values = draws("lograndint", 1, 101)
    assert set(values) <= set(range(1, 101))
    assert sum(value < 10 for value in values) == pytest.approx(DRAWS / 2, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "parameters", "values"),
    [
        ("quniform", (0.1, 0.5, 0.1), {0.1, 0.2, 0.3, 0.4, 0.5}),
        ("quniform", (0, 10, 5), {0, 5, 10}),
        ("qrandint", (16, 65, 16), {16, 32, 48, 64}),
        ("qloguniform", (0.01, 0.05, 0.01), {0.01, 0.02, 0.03, 0.04, 0.05}),
        ("qlograndint", (8, 33, 8), {8, 16, 24, 32}),
    ],
)
def test_stepped_draws_are_multiples(kind: str, parameters: tuple[Any, ...], values: set[float]) -> None:
    drawn = set(draws(kind, *parameters))
    assert drawn == values
    assert {type(each) for each in drawn} == {type(parameters[-1])}


def test_normal_has_its_mean_and_deviation() -> None:
    values = draws("normal", 5.0, 2.0)
    assert fmean(values) == pytest.approx(5, abs=0.15)
    assert stdev(values) == pytest.approx(2, abs=0.1)
    assert all(value == round(value) for value in draws("qnormal", 5.0, 2.0, 1))


def test_choice_draws_every_value_of_any_type() -> None:
    values = draws("choice", [64], [64, 64], None)
    assert [each in values for each in ([64], [64, 64], None)] == [True] * 3


def test_the_same_state_draws_the_same() -> None:
    assert draws("loguniform", 1e-4, 1e-2) == draws("loguniform", 1e-4, 1e-2)


def test_every_distribution_is_described() -> None:
    assert set(ABOUT) == set(PARAMETERS)


@pytest.mark.parametrize(
    ("kind", "parameters", "fault"),
    [
        ("uniform", [0, 1], None),
        ("uniform", [1], "takes [low, high]"),
        ("uniform", ["a", 1], "takes numbers: [low, high]"),
        ("uniform", [True, 2], "takes numbers: [low, high]"),
        ("uniform", [0, math.inf], "takes numbers: [low, high]"),
        ("uniform", [2, 1], "needs low = 2 below high = 1"),
        ("quniform", [0, 1, 0], "needs q above 0"),
        ("loguniform", [0, 1], "needs low = 0 above 0"),
        ("randint", [1, 2.5], "takes whole numbers"),
        ("normal", [0, 0], "needs sd above 0"),
        ("choice", [], "lists no values"),
    ],
)
def test_impossible_parameters_are_told(kind: str, parameters: list[Any], fault: str | None) -> None:
    assert fault_in(kind, parameters) == fault
