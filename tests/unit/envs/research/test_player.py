"""A program that answers through a pipe: every way in which it can fail is its own fault, and only that."""

from __future__ import annotations

import pytest

from operant.envs.research import grading
from operant.envs.research.folder import load_folder
from operant.envs.research.grading import Unfit, Work, finite, graded, seed_of
from operant.envs.sandbox import SandboxDied
from operant.errors import RunError
from tests.unit.envs.research.conftest import GUESS


def score(source: bytes) -> float:
    folder = load_folder(GUESS)
    return folder.grade(Work({"solution.py": source}, "hidden", 5, folder.hidden))


def test_a_right_program_scores_even_if_it_chatters() -> None:
    assert score(b"import os\nos.write(1, b'1.0\\n')\ndef solve(n):\n    print('1.0'); return 2 * n") == 1.0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"1 / 0", "ZeroDivisionError"),
        (b"import sys; sys.exit(0)", "ended before it answered: exit 0"),
        (b"held = bytearray(10**10)", "MemoryError"),
        (b"def solve(n): return 'x' * 3_000_000", "longer than"),
        (b"def solve(n): return float('nan')", "no JSON"),
        (b"def solve(n): return 10**400", "too large"),
        (b"def solve(n): return True", "no number"),
        (b"def solve(n): return {'score': 1.0}", "no number"),
        (b"import os\nos.write(1, b'[' * 100_000 + b'\\n')\ndef solve(n): return 0", ""),
    ],
)
def test_a_program_that_fails_is_unfit(source: bytes, said: str) -> None:
    if not said:
        assert score(source) == 0.0, "what is printed before the first answer goes nowhere"
        return
    with pytest.raises(Unfit, match=said):
        score(source)


def test_a_program_that_is_late_is_unfit_even_if_it_complains_without_end() -> None:
    work = Work({}, "hidden", 0, load_folder(GUESS).hidden)
    program = "import sys\nwhile True: sys.stderr.write('x' * 1000)"
    with work.player(program, {}, seconds=1.0) as player, pytest.raises(Unfit, match="no answer within 1 s"):
        player.ask(1)
    with work.player("import time; time.sleep(60)", {}, 1.0) as player, pytest.raises(Unfit, match="within"):
        player.ask("x" * 1_000_000)


def test_a_missing_artefact_is_unfit() -> None:
    work = Work({"a": b"\xff"}, "hidden", 0, load_folder(GUESS).hidden)
    with pytest.raises(Unfit, match=r"no solution\.py"):
        work.artefact("solution.py")
    with pytest.raises(Unfit, match="UTF-8"):
        work.text("a")
    with pytest.raises(Unfit, match="not finite"):
        finite(float("inf"))


def test_a_sandbox_that_dies_is_no_fault_of_the_program() -> None:
    work = Work({}, "hidden", 0, load_folder(GUESS).hidden)
    tries: list[int] = []

    def dies(times: int) -> float:
        tries.append(1)
        if len(tries) <= times:
            raise SandboxDied("gone")
        return 0.5

    assert graded(lambda _: dies(2), work) == 0.5
    tries.clear()
    with pytest.raises(SandboxDied):
        graded(lambda _: dies(9), work)
    assert len(tries) == grading.TRIES
    with pytest.raises(RunError, match="no score"):
        graded(lambda _: float("nan"), work)


def test_seeds_differ_by_what_they_stand_for() -> None:
    assert len({seed_of("blotto", 3, "validation", k) for k in range(100)} | {seed_of("blotto", 3, "hidden")}) == 101
    assert seed_of("a") == seed_of("a") < 2**63
