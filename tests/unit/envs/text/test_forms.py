"""Which answers in LaTeX are the same, as a strict person would say: no hedge is right, and no other spelling wrong."""

from __future__ import annotations

import threading

import pytest

from operant.envs.text.algebra import Algebra, Undecided
from operant.envs.text.competition import Math, same_answer
from operant.envs.text.task import Problem

pytest.importorskip("math_verify")

HEDGES = [
    ("(3,7)", "3 or 7"),
    ("(3,7)", "3, 7"),
    ("3", "3 or 7"),
    ("7", "3 or 7"),
    ("3", "3, 7"),
    ("3", "3; 7"),
    ("3", r"3 \text{ or } 7"),
    ("3", r"3\text{ or 7}"),
    ("3", r"3 \text{ or more}"),
    ("3", r"3 \lor 7"),
    ("3", "between 3 and 7"),
    ("3", "3 if x > 0 else 7"),
    ("3", r"\pm 3"),
    ("3", "3 = 7"),
    ("7", "3 = 7"),
    ("3", "x = 3 = 7"),
    ("3", r"x \in \{3,7\}"),
    ("3", r"\{3,7\}"),
    ("3", "[3,7]"),
    ("1,-2", "1"),
    ("1,-2", "1,-2,3"),
    ("3", ",".join(map(str, range(50)))),
]
BROKEN = [
    ("3", r"3\Leftrightarrow7"),
    ("3", r"3 \iff 7"),
    ("3", r"3 \Rightarrow 7"),
    ("3", r"3\approx 7"),
    ("3", r"3 \neq 7"),
    ("3", r"3\le 7"),
    ("5", "x > 5"),
    ("7", r"7\boxed"),
    ("3", r"\boxed{3}\boxed{7}"),
    ("3", "3|7"),
    ("3", "(3"),
    ("3", "3+"),
    ("3", "3?7"),
]
OTHERS = [
    ("(3,7)", "[3,7]"),
    ("(3,7)", "(7,3)"),
    ("(3,7]", "(3,7)"),
    (r"(-\infty,0]", r"(-\infty,0)"),
    ("0", "10^{-40}"),
    (r"\sqrt{2}", "1.41421356"),
    (r"\frac{1}{3}", "0.333333"),
    (r"\text{even}", r"\text{neve}"),
    ("52_8", "52"),
    ("p - q", "q - p"),
    ("y = 2x + 3", "y = 2x"),
    ("5x - 7y + 11z + 4 = 0", "5x - 7y + 11z = 4"),
]
SAME = [
    ("(3,7)", r"\left(3, 7\right)"),
    ("3", "x = 3"),
    ("3", r"\frac{6}{2} = 3"),
    ("3", "a + b = 3"),
    ("1,-2", "x = 1 or x = -2"),
    ("1,-2", r"\{-2,1\}"),
    ("3, 5, 7", "7,5,3"),
    (r"1 \pm \sqrt{19}", r"1+\sqrt{19}, 1-\sqrt{19}"),
    (r"3 \pm 2 \sqrt{2}", r"3-2\sqrt2 \text{ and } 3+2\sqrt2"),
    (r"\{1\pm\sqrt{5},-2\}", r"-2, 1+\sqrt5, 1-\sqrt5"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}"),
    (r"\frac{1}{2}", r"\frac{1}{2} or 0.5"),
    (r"\begin{pmatrix} -1/3 \\ 2/3 \end{pmatrix}", r"\begin{bmatrix} -\frac13 \\ \frac23 \end{bmatrix}"),
    (r"(0,9) \cup (9,36)", r"(9,36)\cup(0,9)"),
    ("5x - 7y + 11z + 4 = 0", "-5x + 7y - 11z - 4 = 0"),
    ("5x - 7y + 11z + 4 = 0", "5x - 7y + 11z = -4"),
    ("y = 2x + 3", "2x + 3"),
    (r"x \in [-2,7]", "[-2,7]"),
    (r"\text{Evelyn}", "evelyn"),
    ("6 - 5i", "-5i + 6"),
    (r"\cot x", r"\frac{\cos x}{\sin x}"),
    (r"\frac{20000}{\pi}", r"20000/\pi"),
    ("(a+5)(b+2)", "ab + 2a + 5b + 10"),
    (r"11\sqrt2", r"11\sqrt{2}\text{ cm}"),
    ("10", r"10\%"),
    (r"\frac{11+9a}{20}", "0.55 + 0.45a"),
]


@pytest.mark.parametrize(("truth", "given"), [*HEDGES, *BROKEN, *OTHERS])
def test_what_is_not_the_answer(truth: str, given: str) -> None:
    assert same_answer(truth, given).score == 0.0


@pytest.mark.parametrize(("truth", "given"), SAME)
def test_other_ways_to_write_the_answer(truth: str, given: str) -> None:
    assert same_answer(truth, given).outcome == "right"


def test_answers_of_a_contest_are_right_as_they_stand_and_with_their_parts_turned() -> None:
    math = Math()
    for truth, given in SAME:
        problem = Problem("math/eval/0", "math", "", {"answer": truth, "solution": ""})
        assert math.verify(problem, rf"So it is \boxed{{{given}}}.").outcome == "right"


def test_a_formula_that_never_ends_costs_its_process_and_no_more() -> None:
    algebra = Algebra(seconds=0.5)
    try:
        assert algebra.same("x+x", "2x") is True
        with pytest.raises(Undecided):
            algebra.same("(" * 150 + "x" + ")" * 150, "x+1")
        assert algebra.same(r"\sqrt{8}", r"2\sqrt{2}") is True
        assert algebra.undecided == 1
    finally:
        algebra.close()


def test_a_process_that_was_killed_is_started_again() -> None:
    algebra = Algebra()
    try:
        assert algebra.same("x+x", "2x") is True
        assert algebra._process is not None
        algebra._process.kill()
        algebra._process.wait()
        assert algebra.same("x+x", "3x") is False
    finally:
        algebra.close()


def test_threads_share_the_process() -> None:
    algebra, found = Algebra(), dict[int, bool | None]()
    asking = [
        threading.Thread(target=lambda n=n: found.update({n: algebra.same(f"{n}x+x", f"{n + 1}x")}))
        for n in range(2, 10)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    algebra.close()
    assert found == dict.fromkeys(range(2, 10), True)


BOMBS = [
    "9^{9^{9}}",
    "10^{10^{10}}",
    "1000000000!",
    "(" * 150 + "x" + ")" * 150,
    "(x+y+z+a+b+c)^{9999}",
    r"\binom{10^9}{10^8}",
    "(9999^{9999})^{9999}",
    "99999!",
    r"\sum_{k=1}^{1000000}k",
    r"\int_0^1 x^{x^x} dx",
    r"\frac{1}{" * 20 + "x" + "}" * 20,
    "x" * 1_000_000,
]


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:20])
def test_no_bomb_is_right_or_unjudged(bomb: str) -> None:
    for verdict in (same_answer("x+1", bomb), same_answer("17", bomb)):
        assert verdict.outcome in ("wrong", "timeout", "unparsed")
    assert same_answer("2x", "x+x").outcome == "right"


def test_the_source_of_the_process_imports_nothing_of_ours() -> None:
    from operant.envs.text.algebra import SOURCE

    assert "operant" not in SOURCE.lower().replace("nothing of operant", "")
