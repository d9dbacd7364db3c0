"""The settings of forks: moved by a factor or to a neighbor, within the space, always the same for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

from operant.hpo.perturbation import perturb
from operant.spec.space import parse

FACTORS = (0.8, 1.2)


def _moves(search: dict[str, Any], value: Any, resample: float = 0.0) -> set[Any]:
    space = parse(search)
    settings = {space[0].path: value, "kept": 7}
    found = [perturb(space, settings, FACTORS, resample, seed) for seed in range(40)]
    assert found == [perturb(space, settings, FACTORS, resample, seed) for seed in range(40)]
    assert all(each["kept"] == 7 for each in found)
    return {each[space[0].path] for each in found}


@pytest.mark.parametrize(
    ("search", "value", "moves"),
    [
        ({"lr__loguniform": [1e-4, 1e-2]}, 1e-3, {0.8e-3, 1.2e-3}),
        ({"lr__loguniform": [1e-4, 1e-2]}, 0.95e-2, {0.76e-2, 1e-2}),
        ({"gamma__uniform": [0.9, 0.99]}, 0.95, {0.9, 0.99}),
        ({"epoch__randint": [1, 9]}, 2, {1, 3}),
        ({"epoch__randint": [1, 9]}, 8, {6, 8}),
        ({"size__quniform": [10, 100, 10]}, 20, {10, 30}),
        ({"clip__choice": [0.1, 0.2, 0.3, 0.4]}, 0.2, {0.1, 0.3}),
        ({"clip__choice": [0.1, 0.2, 0.3]}, 0.3, {0.2}),
        ({"shift__normal": [0.0, 1.0]}, 10.0, {8.0, 12.0}),
    ],
)
def test_a_setting_moves_a_little_and_stays_in_its_space(search: dict[str, Any], value: Any, moves: set[Any]) -> None:
    found = _moves(search, value)
    assert sorted(found) == pytest.approx(sorted(moves))
    assert {type(each) for each in found} == {type(value)}


def test_with_some_probability_it_is_drawn_anew() -> None:
    drawn = _moves({"lr__loguniform": [1e-4, 1e-2]}, 1e-3, resample=1.0)
    assert len(drawn) == 40
    assert all(1e-4 <= each <= 1e-2 for each in drawn)
    mixed = _moves({"lr__loguniform": [1e-4, 1e-2]}, 1e-3, resample=0.5)
    assert {0.8e-3, 1.2e-3} < mixed


def test_a_value_from_before_the_space_was_changed_comes_into_it() -> None:
    assert _moves({"clip__choice": [0.1, 0.2]}, 0.9) == {0.1, 0.2}
    assert all(1 <= each < 9 for each in _moves({"epoch__randint": [1, 9]}, None))
