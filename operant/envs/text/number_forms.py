"""A number as an answer writes it: in other correct forms, and nearly right. What verifiers of numbers are tried with.

The forms are written from how people and models write, without a look at how a verifier reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from random import Random

LARGEST_DENOMINATOR = 1_000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def plain(number: Decimal) -> str:
    """A number in digits, without an exponent."""
    return f"{number:f}"


def number_forms(number: Decimal | None, marked: bool = True) -> dict[str, str]:
    """Answers that give a number; with `marked` also those that say where it stands, and go on after it.

    None, a reference answer that is no number, has no forms.
    """
    if number is None:
        return {}
    n = plain(number)
    forms = {
        "alone": n,
        "spaces around": f"\n\n  {n}  \n",
        "after work": f"First 3 * 7 = 21, then 21 - 4 = 17.\nSo it is {n}",
        "full stop": f"It comes to {n}.",
        "bold": f"So it is **{n}**.",
        "formula": f"So it is ${n}$.",
        "equation": f"x = {n}",
        "unit": f"That makes {n} apples.",
        "plus sign or minus sign": n.replace("-", "\N{MINUS SIGN}") if number < 0 else f"It is +{n}.",
        "decimal places": f"It is {n if '.' in n else f'{n}.0'}0",
    }
    if number in range(len(WORDS)):
        forms["in words"] = f"It comes to {WORDS[int(number)]}."
    if abs(number) >= 1_000:
        forms["thousands"] = f"It comes to {number:,f}"
    return forms | (_marked_forms(number, n) if marked else {})


def _marked_forms(number: Decimal, n: str) -> dict[str, str]:
    forms = {
        "hashes": f"3 * 7 = 21\n#### {n}",
        "box": f"So it is $\\boxed{{{n}}}$.",
        "box with spaces": f"\\[ \\boxed{{ {n} }} \\]",
        "box with a unit": f"\\boxed{{{n}\\text{{ apples}}}}",
        "box with currency": f"\\boxed{{\\${n}}}",
        "box and a remark": f"\\boxed{{{n}}} is the total of all 3 days.",
        "sentence": f"The answer is {n}.",
        "sentence with currency": f"The answer is ${n}.",
        "sentence and a remark": f"The answer is {n}. It took 3 steps.",
        "label": f"Answer: {n}",
        "label and a remark": f"**Final answer: {n}**\n\nThis took 3 steps.",
    }
    if abs(number) >= 1_000:
        mantissa, _, exponent = f"{number.normalize():e}".partition("e+")
        forms["power of ten"] = f"\\boxed{{{mantissa} \\times 10^{{{exponent}}}}}"
        forms["box with thousands"] = f"\\boxed{{{number:,f}}}"
        forms["box with braced thousands"] = f"\\boxed{{{f'{number:,f}'.replace(',', '{,}')}}}"
    fraction = Fraction(number)
    if 1 < fraction.denominator <= LARGEST_DENOMINATOR:
        forms["fraction"] = f"The answer is {fraction.numerator}/{fraction.denominator}."
        forms["box with a fraction"] = f"\\boxed{{\\frac{{{fraction.numerator}}}{{{fraction.denominator}}}}}"
    return forms


def other_numbers(number: Decimal, rng: Random) -> dict[str, Decimal]:
    """Numbers that are nearly the right one."""
    n = plain(number)
    places = [place for place, sign in enumerate(n) if sign.isdigit()]
    place = rng.choice(places)
    changed = n[:place] + rng.choice([digit for digit in "123456789" if digit != n[place]]) + n[place + 1 :]
    near = {
        "one more": number + 1,
        "one less": number - 1,
        "other sign": -number,
        "digit changed": Decimal(changed),
        "ten times": number * 10,
        "a tenth": number / 10,
        "a bit more": number + Decimal("0.01"),
    }
    return {name: value for name, value in near.items() if value != number}


def number_near_misses(number: Decimal | None, rng: Random, marked: bool = True) -> dict[str, str]:
    """Answers that give another number, though the right one may stand beside it; None has none."""
    if number is None:
        return {}
    n, misses = plain(number), {}
    for name, value in other_numbers(number, rng).items():
        forms = number_forms(value, marked)
        misses[name] = forms[rng.choice(sorted(forms))]
    more = plain(number + 1)
    misses["taken back"] = f"It could be {n}. No, it is {more}."
    if marked:
        misses |= {
            "hedged": f"The answer is {n} or {more}.",
            "hedged after hashes": f"#### {n} or {more}",
            "hedged in a box": f"\\boxed{{{n} \\text{{ or }} {more}}}",
            "two boxes": f"\\boxed{{{n}}} or \\boxed{{{more}}}",
            "not that": f"\\boxed{{{n}}} is wrong. \\boxed{{{more}}}",
        }
    return misses


def number_cheats(prompt: str) -> Mapping[str, str]:
    """Texts that give no number as their answer, or all of them."""
    return {
        "the question": prompt,
        "all numbers": ", ".join(map(str, range(200))),
        "all numbers in a box": f"\\boxed{{{', '.join(map(str, range(200)))}}}",
        "not a number": "The answer is nan.",
        "infinity": "\\boxed{\\infty}",
        "digits of other scripts": "\u0967\u0968 \uff11\uff12",
        "a number without end": "The answer is " + "9" * 10_000,
        "marks alone": "####\n\\boxed{}\nThe answer is .",
    }
