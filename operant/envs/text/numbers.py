"""Numbers in running text: where one stands, and when two of them are the same.

Only ASCII digits count, so that look-alikes of other scripts are no answer, and a number of more than
`LONGEST` characters is none either: nobody asked for it, and comparing it could be made to cost something.
"""

from __future__ import annotations

import re
from collections import deque
from decimal import Decimal
from fractions import Fraction

LONGEST = 60
READ = 20_000  # characters at the end of a text: an answer stands there, and more need not be read

# A minus is a sign only where no operand stands before it: "12-5" holds 12 and 5, "x = -5" holds -5.
_NUMBER = re.compile(
    r"(?:(?<![0-9A-Za-z)\]}.])-\s?\$?)?"
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?"
    r"|(?:(?<![0-9A-Za-z)\]}.])-\$?)?(?<![0-9])\.[0-9]+"
)
_LEADING = re.compile(r"[ \t]*(-?[0-9]+)(?![0-9])")
# After a number: a second candidate, or what it is divided by.
_HEDGE = re.compile(r"[\s$%*]{0,4},?\s{0,3}(?:or|and|to)\s{1,3}[-$]{0,2}[0-9]")
_OVER = re.compile(r"\s?/\s?([0-9]{1,20})(?![0-9]|\.[0-9])")
_LISTED = re.compile(r"[-0-9.,;\s]+")
_DECORATION = str.maketrans("", "", "$,% \t\n")


def numbers(text: str) -> list[Decimal]:
    """The numbers of a text (of its end, where it is very long), in order."""
    found = (value(match.group()) for match in _NUMBER.finditer(_tail(text)))
    return [number for number in found if number is not None]


def first_number(text: str) -> Fraction | None:
    """The first number of a text, or of a fraction such as 1/2 its value; None where there is none, or 1 or 2."""
    plain = _ascii_minus(text[:READ])
    match = _NUMBER.search(plain)
    found = value(match.group()) if match else None
    if match is None or found is None or _HEDGE.match(plain, match.end()):
        return None
    over = _OVER.match(plain, match.end())
    under = int(over[1]) if over else 1
    return Fraction(found) / under if under else None


def is_several(text: str) -> bool:
    """Whether a text ends with a line of nothing but different numbers: candidates, and no answer."""
    line = _tail(text).rstrip().rpartition("\n")[2]
    return _LISTED.fullmatch(line) is not None and len(set(numbers(line))) > 1


def last_number(text: str) -> Decimal | None:
    """The last number of a text, or None; text that ends in an endless number has none."""
    last = last_match(_NUMBER, _tail(text))
    return value(last.group()) if last else None


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last place where a pattern is found."""
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def leading_integer(text: str) -> int | None:
    """The integer with which a text begins at once, or None."""
    match = _LEADING.match(text)
    return int(match.group(1)) if match and len(match.group(1)) <= LONGEST else None


def value(written: str) -> Decimal | None:
    """What a written number is worth, without its $, commas, % and trailing dots; None where it is no number."""
    plain = _ascii_minus(written).translate(_DECORATION).rstrip(".")
    if len(plain) > LONGEST or not re.fullmatch(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", plain):
        return None
    return Decimal(plain)


def _ascii_minus(text: str) -> str:
    return text.replace("\N{MINUS SIGN}", "-")


def _tail(text: str) -> str:
    return _ascii_minus(text[-READ:])
