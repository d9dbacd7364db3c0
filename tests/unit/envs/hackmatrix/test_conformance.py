"""Every conformance case of the rules, through the reference and through the JSON-lines face."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from operant.envs.hackmatrix.conformance.cases import Case, load_cases, read_case
from operant.envs.hackmatrix.conformance.conform import faults
from tests.unit.envs.hackmatrix.forms import JsonLines, Reference

CASES = load_cases()


@pytest.fixture(scope="module")
def face() -> Iterator[JsonLines]:
    process = JsonLines()
    yield process
    assert process.close() == 0


def test_there_are_all_cases() -> None:
    assert [case.number for case in CASES] == list(range(1, 181))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.number))
def test_reference(case: Case) -> None:
    for seed in range(3):
        assert faults(Reference(seed), case) == [], case.text


def test_json_lines(face: JsonLines) -> None:
    assert {case.text: found for case in CASES if (found := faults(face, case))} == {}


@pytest.mark.parametrize(
    "result",
    [
        "at 3,3", "hp 2", "turn 0", "R 0.05", "done", "invalid", "E virus(4,3) 2", "X virus(4,3) 1", "nT 1", "nK 1",
        "T(1,1) 2", "D(4,4,5/5)", "C(4,3,2)", "K(4,3)", "mask = {0}", "mask has {4}", "mask lacks {0}", "interval 11",
        "part distance 0", "own [5]", "hints [(1,1)]", "show on", "exit(0,0)", "no exit(5,5)", "board stage",
        "vector 0,0,0,0,0,0,0,0,0,0", "channels(5,5) 40=0", "E one of virus 1 or virus 2 at (4,3)", "centre(4,3)",
    ],
)  # fmt: skip
def test_the_checker_finds_what_is_not_so(result: str) -> None:
    assert faults(Reference(), read_case(0, f"P(3,3) | 0 | {result}")) != []
