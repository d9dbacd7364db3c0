"""Answers in LaTeX: where they stand in a text, and one spelling for the many of the same answer."""

from __future__ import annotations

import re
from fractions import Fraction

from operant.envs.text.numbers import LONGEST, last_match

LONGEST_ANSWER = 400  # characters

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(?P<bare>[0-9A-Za-z]))")
_SAID = re.compile(r"answer\s{1,3}is:?", re.IGNORECASE)
_SPACES = re.compile(r"\\[,;:! ]|\\q?quad|~|\s+")
_NOISE = re.compile(r"\\left(?![a-z])|\\right(?![a-z])|\\displaystyle|\\limits|\\\$|\$|\\?%|\^\{?\\circ\}?|\\degree")
_UNITS = re.compile(r"(?<=[0-9}])\\(?:text|mbox|mathrm|textrm)\{[^{}]*\}(?:\^\{?[0-9]\}?)?$")
_WORDS = re.compile(r"\\(?:text|mbox|mathrm|textrm|textbf|mathbf)\{([^{}]*)\}")
_NAMED = re.compile(r"^[A-Za-z](?:\([A-Za-z]\))?(?:=|\\in)")
_THOUSANDS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_FRACTION = re.compile(r"(-?)\\frac\{(-?[0-9]+)\}\{(-?[0-9]+)\}")
_MIXED = re.compile(r"(-?)([0-9]+)\\frac\{([0-9]+)\}\{([0-9]+)\}")


def last_boxed(text: str) -> str | None:
    """What stands in the last \\boxed{} (of nested ones: the innermost); None where there is none or it never ends."""
    last = last_match(_BOX, text)
    if last is None:
        return None
    return last["bare"] or _up_to_closing_brace(text, last.end())


def final_answer(text: str) -> str | None:
    """The answer that a text ends with: its last box, what it says the answer is, else its last formula."""
    boxed = last_boxed(text)
    if boxed is not None:
        return boxed
    said = last_match(_SAID, text)
    if said is not None and (sentence := _first_sentence(text[said.end() : said.end() + LONGEST_ANSWER])):
        return sentence
    parts = text.rsplit("$", 2)
    return parts[1] if len(parts) == 3 and parts[1].strip() else None


def normalise(answer: str) -> str:
    """One spelling: no spaces, sizes, units, currency or degrees; whole braces; plain numbers."""
    plain = _SPACES.sub(" ", answer.strip().rstrip(".").replace("\N{MINUS SIGN}", "-"))
    plain = _NOISE.sub("", plain).replace("dfrac", "frac").replace("tfrac", "frac")
    plain = _WORDS.sub(lambda word: word[1].strip(), _UNITS.sub("", plain.replace(" ", "")))
    plain = _NAMED.sub("", plain)
    plain = re.sub(r"\\frac([0-9A-Za-z])([0-9A-Za-z])", r"\\frac{\1}{\2}", plain)
    plain = re.sub(r"\\frac([0-9A-Za-z])\{", r"\\frac{\1}{", plain)
    plain = re.sub(r"(\\frac\{[^{}]*\})([0-9A-Za-z])", r"\1{\2}", plain)
    plain = re.sub(r"\\sqrt([0-9A-Za-z])", r"\\sqrt{\1}", plain)
    plain = re.sub(r"([_^])\{([0-9A-Za-z])\}", r"\1\2", plain)
    plain = re.sub(r"^(-?)([0-9]+)/([0-9]+)$", r"\1\\frac{\2}{\3}", plain)
    plain = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain)
    plain = re.sub(r"(?<![0-9])\.([0-9])", r"0.\1", plain)
    return re.sub(r"^\(([A-Z])\)$", r"\1", plain).rstrip(".")


def number(plain: str) -> Fraction | None:
    """What a normalised answer is worth if it is a plain number, fraction or mixed fraction; else None."""
    if len(plain) > LONGEST:
        return None
    if re.fullmatch(r"[-+]?[0-9]+(?:\.[0-9]+)?", plain):
        return Fraction(plain)
    if match := _FRACTION.fullmatch(plain):
        sign, over, under = match.groups()
        return _signed(sign, Fraction(int(over), int(under))) if int(under) else None
    if match := _MIXED.fullmatch(plain):
        sign, whole, over, under = match.groups()
        return _signed(sign, int(whole) + Fraction(int(over), int(under))) if int(under) else None
    return None


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign else value


def _up_to_closing_brace(text: str, start: int) -> str | None:
    depth = 1
    for place in range(start, min(len(text), start + 4 * LONGEST_ANSWER)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place]
    return None


def _first_sentence(text: str) -> str | None:
    """The rest of a sentence, with the full stop that ends it (not the point in 3.5) taken off."""
    line = text.strip().split("\n", 1)[0]
    sentence = re.split(r"\.(?=\s|$)", line, maxsplit=1)[0].strip()
    return sentence or None
