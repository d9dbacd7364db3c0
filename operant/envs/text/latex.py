"""Answers in LaTeX: where they stand in a text, and one spelling for the many of the same answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from operant.envs.text.numbers import LONGEST, READ, last_match

LONGEST_ANSWER = 400  # characters

# A box without braces holds one character: of "\\boxed 12" nobody can say whether it means 1 or 12.
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(?:(?P<open>\{)|(?P<bare>[0-9A-Za-z](?![0-9A-Za-z])))?")
_ONLY_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.DOTALL)
_JOINT = re.compile(r"[\s$.,;]*(?:(?:or|and|\\lor|\\text\{\s*(?:or|and)\s*\})[\s$]*)?")
_SAID = re.compile(r"answer\s{1,3}is:?", re.IGNORECASE)
_SPACES = re.compile(r"(?<!\\)\\[,;:! ]|\\q?quad|~|\s+")
_THIN = re.compile(r"(?<=[0-9])\\,(?=[0-9]{3}(?![0-9]))")  # between thousands
_NOISE = re.compile(r"\\left(?![a-z])|\\right(?![a-z])|\\displaystyle|\\limits|\\\$|\$|\\?%|\^\{?\\circ\}?|\\degree")
_UNITS = re.compile(r"(?<=[0-9}])\s*\\(?:text|mbox|mathrm|textrm)\{([A-Za-z\s./-]*)\}\s*(?:\^\{?[0-9]\}?)?\s*$")
# What stands behind a number and is no unit: it takes back what the number says, or says another.
_NO_UNITS = {"or", "and", "if", "to", "not", "than", "at", "least", "most", "more", "less", "else", "except", "between"}
_NEEDED = re.compile(r"(\\[A-Za-z]+) (?=[A-Za-z])")  # the space that ends a command's name
_WORDS = re.compile(r"\\(?:text|mbox|mathrm|textrm|textbf|mathbf)\{([^{}]*)\}")
_NAMED = re.compile(r"^[A-Za-z](?:\([A-Za-z]\))?(?:=|\\in)")
_THOUSANDS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_FRACTION = re.compile(r"(-?)\\frac\{(-?[0-9]+)\}\{(-?[0-9]+)\}")
_MIXED = re.compile(r"(-?)([0-9]+)\\frac\{([0-9]+)\}\{([0-9]+)\}")


def last_boxed(text: str) -> str | None:
    """What stands in the last \\boxed{}; None where there is none, it is empty or it never ends.

    Boxes with nothing else between them than "or", "and" or a comma are one answer, a list. A box that holds only a box
    is that one; one that holds more keeps the mark of the inner one, which no answer has.
    """
    boxes = _boxes(text)
    return boxes[-1] if boxes else None


def final_answer(text: str) -> str | None:
    """The answer that a text ends with: its last box, what it says the answer is, else its last formula.

    A text whose last box is broken has no answer: it has said where to look, and nothing stands there.
    """
    if last_match(_BOX, text) is not None:
        return last_boxed(text)
    said = last_match(_SAID, text)
    if said is not None and (sentence := _first_sentence(text[said.end() : said.end() + LONGEST_ANSWER])):
        return sentence
    parts = text.rsplit("$", 2)
    return parts[1] if len(parts) == 3 and parts[1].strip() else None


def normalize(answer: str) -> str:
    """One spelling: no spaces, sizes, units, currency or degrees; whole braces; plain numbers."""
    plain = answer.strip().rstrip(".").replace("\N{MINUS SIGN}", "-").replace("{,}", ",")
    plain = _SPACES.sub(" ", _THIN.sub("", plain))
    plain = _NOISE.sub("", plain).replace("dfrac", "frac").replace("tfrac", "frac")
    plain = _WORDS.sub(lambda word: word[1].strip(), _UNITS.sub(_unless_hedged, plain))
    plain = _NEEDED.sub("\\1\0", plain).replace(" ", "").replace("\0", " ")
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


def unit_power(answer: str) -> str:
    """The power of the unit behind a number, such as 2 of square meters; nothing where there is none."""
    units = _UNITS.search(answer.strip().rstrip(".").rstrip("$"))
    return "".join(re.findall(r"[0-9]", units[0])) if units else ""


def _unless_hedged(units: re.Match[str]) -> str:
    return units[0] if _NO_UNITS.intersection(units[1].lower().split()) else ""


def number(plain: str) -> Fraction | None:
    """What a normalized answer is worth if it is a plain number, fraction or mixed fraction; else None."""
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


def _boxes(text: str) -> list[str | None]:
    """The contents of the boxes that stand in no other, joined ones as one; None for each that is broken."""
    text = text[-READ:]
    closing = _closing_braces(text)
    found: list[str | None] = []
    end = 0
    for box in _BOX.finditer(text):
        if box.start() < end:
            continue
        content, after = _content(text, box, closing)
        before = text[end : box.start()]
        if found and found[-1] is not None and content is not None and _JOINT.fullmatch(before[:LONGEST_ANSWER]):
            content = f"{found.pop()}, {content}"
        found.append(content)
        end = after
    return found


def _content(text: str, box: re.Match[str], closing: Mapping[int, int]) -> tuple[str | None, int]:
    """What a box holds, and where it ends."""
    if box["open"] is None:
        return box["bare"], box.end()
    close = closing.get(box.end() - 1)
    if close is None or close - box.end() > 4 * LONGEST_ANSWER:
        return None, box.end()
    content = text[box.end() : close].strip()
    while (inner := _ONLY_BOX.fullmatch(content)) and _closing_braces(content).get(inner.start(1) - 1) == inner.end(1):
        content = inner[1].strip()
    return content or None, close + 1


def _closing_braces(text: str) -> dict[int, int]:
    """Where each brace that is closed is closed, found in one go however many there are."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()
    return closing


def _first_sentence(text: str) -> str | None:
    """The rest of a sentence, with the full stop that ends it (not the point in 3.5) taken off."""
    line = text.strip().split("\n", 1)[0]
    sentence = re.split(r"\.(?=\s|$)", line, maxsplit=1)[0].strip()
    return sentence or None
