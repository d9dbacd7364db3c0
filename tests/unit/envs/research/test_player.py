"""A program that answers through a pipe: every way in which it can fail is its own fault, and only that."""

from __future__ import annotations

import pytest

from operant.envs.research.folder import load_folder
from operant.envs.research.grading import GraderFailed, Unfit, Work, finite, graded
from operant.envs.sandbox import SandboxDied, fault
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


def test_a_sandbox_that_dies_now_and_then_is_no_fault_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work({}, "hidden", 0, load_folder(GUESS).hidden)
    tries: list[int] = []

    def dies(times: int) -> float:
        tries.append(1)
        if len(tries) <= times:
            raise SandboxDied("gone")
        return 0.5

    assert graded(lambda _: dies(2), work) == 0.5
    tries.clear()
    with pytest.raises(Unfit, match="died 3 times"):
        graded(lambda _: dies(9), work)
    assert len(tries) == fault.TRIES
    monkeypatch.setattr("operant.envs.research.grading.sandbox_works", lambda kind: False)
    with pytest.raises(SandboxDied):
        graded(lambda _: dies(99), work)


@pytest.mark.parametrize("said", [float("nan"), float("inf"), "no number"])
def test_a_grader_that_fails_on_an_artefact_scores_it_as_unfit(said: object) -> None:
    work = Work({}, "hidden", 0, load_folder(GUESS).hidden)
    with pytest.raises(GraderFailed):
        graded(lambda _: said, work)  # pyright: ignore[reportArgumentType]


def test_a_fault_of_the_machine_is_raised_as_what_it_is() -> None:
    def full(_: Work) -> float:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        graded(full, Work({}, "hidden", 0, load_folder(GUESS).hidden))
