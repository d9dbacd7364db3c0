"""Finding the answer in a text, and telling whether it is the same: numbers and LaTeX."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from operant.envs.text.algebra import ALGEBRA
from operant.envs.text.competition import same_answer
from operant.envs.text.latex import final_answer, last_boxed, normalize, number
from operant.envs.text.numbers import last_number, numbers
from operant.envs.text.word_problems import given_answer


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It costs $1,234.50.", ["1234.50"]),
        ("12-5=7", ["12", "5", "7"]),
        ("x = -5 and (-3)", ["-5", "-3"]),
        ("−4 degrees", ["-4"]),  # noqa: RUF001
        ("50% of .5", ["50", ".5"]),
        ("1,2,3", ["1", "2", "3"]),
        ("1,0000", ["1", "0000"]),
        ("४६ ４６", []),  # noqa: RUF001
        ("3.", ["3"]),
    ],
)
def test_numbers_of_a_text(text: str, found: list[str]) -> None:
    assert numbers(text) == [Decimal(one) for one in found]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("... so 7 apples\n#### 72", "72"),
        ("#### $1,080.00 or so, 5 left", "1080"),
        ("#### 5\nNo: #### 6", "6"),
        (r"\boxed{18} of the 20", "18"),
        (r"\boxed{\text{about } 18\%}", "18"),
        ("The answer is $72. There were 3 of them.", "72"),
        ("the answer is: -3.", "-3"),
        ("First 3, then 4", "4"),
        ("#### none, but 12", "12"),
        (r"\boxed{18} or \boxed{20}, then #### 20", "20"),
    ],
)
def test_the_number_that_a_text_gives(text: str, answer: str) -> None:
    assert given_answer(text) == Decimal(answer)


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{18} or \boxed{20}",
        r"\boxed{18 \text{ or } 20}",
        r"\boxed{18, 20}",
        "1 2 3 4 5 6 7 8",
        "#### 18 or 20",
        "The answer is 18 or 20.",
    ],
)
def test_several_numbers_are_none(text: str) -> None:
    assert given_answer(text) is None


def test_an_endless_number_is_none() -> None:
    assert last_number("9" * 1_000_000) is None
    assert given_answer("#### " + "9" * 1_000_000) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{\frac{1}{2}}, so twice that is \boxed{3}", "3"),
        (r"\boxed{3} or \boxed{7}", "3, 7"),
        (r"\boxed{3}, $\boxed{7}$", "3, 7"),
        (r"\boxed{3 \boxed{7}}", r"3 \boxed{7}"),
        (r"\boxed{}", None),
        (r"\boxed 12", None),
        (r"7\boxed", None),
        (r"\boxed{3} and then \boxed{", None),
        (r"\boxed{\boxed{\boxed{7}}}", "7"),
        (r"\fbox{x^{2}}", "x^{2}"),
        (r"\boxed 5", "5"),
        (r"\boxed{3", None),
        (r"\boxed{" * 10_000, None),
    ],
)
def test_the_last_box(text: str, answer: str | None) -> None:
    assert last_boxed(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The final answer is $3.5$. I hope it is right.", "$3.5$"),
        ("We get $a$ and then $b + 1$, which is it.", "b + 1"),
        ("nothing", None),
        ("$" * 3, None),
        (r"It is $7$, or $7\boxed$", None),
        (r"The answer is 3. \boxed{7", None),
    ],
)
def test_the_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac43", r"\dfrac{4}{3}"),
        (r"\frac{9}{19}", r"\frac9{19}"),
        (r"10,\!080", "10080"),
        (r"\$32,\!348", "32348"),
        (r"864 \mbox{ inches}^2", "864"),
        (r"5.4 \text{ cents}", "5.4"),
        (r"\text{(C)}", "C"),
        (r"90^\circ", "90"),
        ("x=5", "5"),
        (r"x \in [-2,7]", "[-2,7]"),
        (".35625", "0.35625"),
        (r"11\sqrt2", r"11\sqrt{2}"),
        ("4210_{5}", "4210_5"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
        (r"\text{Evelyn}", "Evelyn"),
    ],
)
def test_one_spelling(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("5", "6"), (r"\frac{1}{2}", r"\frac{2}{1}"), ("-3", "3"), (r"\text{even}", r"\text{odd}"), ("1,000", "1,00")],
)
def test_other_answers_stay_apart(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


@pytest.mark.parametrize(
    ("plain", "worth"), [("1.25", 1.25), (r"\frac{5}{4}", 1.25), (r"-1\frac{1}{4}", -1.25), (r"\frac{1}{0}", None)]
)
def test_plain_numbers(plain: str, worth: float | None) -> None:
    assert number(plain) == worth


@pytest.mark.parametrize(
    ("truth", "given", "outcome"),
    [
        (r"\frac{3}{2}", "1.5", "right"),
        ("137 \\frac{1}{2}", "137.5", "right"),
        (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", "right"),
        ("x^3+3x-6", "3x + x^3 - 6", "right"),
        ("3, 5, 7", "7,5,3", "right"),
        ("p - q", "q - p", "wrong"),
        ("3", ",".join(map(str, range(50))), "wrong"),
        ("3", "10^{10^9}", "wrong"),
        (r"\pi", "(10^8)!", "wrong"),
        ("x", "9^{9^{9^9}}", "wrong"),
    ],
)
def test_answers_in_latex(truth: str, given: str, outcome: str) -> None:
    pytest.importorskip("math_verify")
    ALGEBRA.start()
    began = time.monotonic()
    assert same_answer(truth, given).outcome == outcome
    assert time.monotonic() - began < 60
