"""An answer in LaTeX in other correct forms, and nearly right. What verifiers of formulas are tried with."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from random import Random

_WHOLE = re.compile(r"-?[0-9]+")
_FRACTION = re.compile(r"(-?)\\frac\{([0-9]+)\}\{([0-9]+)\}")
_WORD = re.compile(r"\\text\{([A-Za-z ]+)\}")
_LIST = re.compile(r"[^,()\[\]{}\\]+(?:,[^,()\[\]{}\\]+)+")
_INTERVAL = re.compile(r"([(\[])([^,()\[\]]+),([^,()\[\]]+)([)\]])")
_FORMULA = re.compile(r"(?:[0-9A-Za-z+\-^(){} ]|\\(?:frac|sqrt|pi|cdot))+")


def latex_forms(answer: str) -> dict[str, str]:
    """Texts that end with an answer."""
    forms = {
        "box": f"\\boxed{{{answer}}}",
        "box in a formula": f"So we get $x = y = \\boxed{{{answer}}}$.",
        "box with spaces": f"\\[ \\boxed{{ {answer} }} \\]",
        "box and a remark": f"$\\boxed{{{answer}}}$. We checked it in 3 ways.",
        "box with a full stop": f"\\boxed{{{answer}.}}",
        "two boxes, the last one counts": f"One finds \\boxed{{17x}} first. But then we get \\boxed{{{answer}}}.",
        "sentence": f"The answer is ${answer}$.",
        "last formula": f"From $x + 1$ follows ${answer}$",
    }
    inside = _same_number(answer) | _same_form(answer)
    return forms | {name: f"\\boxed{{{text}}}" for name, text in inside.items()}


def _same_number(answer: str) -> dict[str, str]:
    if _WHOLE.fullmatch(answer):
        n, sign = answer.lstrip("-"), "-" if answer.startswith("-") else ""
        forms = {"decimal places": f"{answer}.0", "unit": f"{answer}\\text{{ cm}}", "named": f"x = {answer}"}
        forms["fraction of it"] = f"{sign}\\frac{{{2 * int(n)}}}{{2}}"
        if len(n) > 3:
            forms["thousands"] = f"{int(answer):,}"
            forms["braced thousands"] = f"{int(answer):,}".replace(",", "{,}")
            forms["thousands by a thin space"] = f"{int(answer):,}".replace(",", "\\,")
        return forms
    if (fraction := _FRACTION.fullmatch(answer)) and int(fraction[3]):
        sign, over, under = fraction[1], int(fraction[2]), int(fraction[3])
        forms = {
            "dfrac": answer.replace("\\frac", "\\dfrac"),
            "slash": f"{sign}{over}/{under}",
            "not reduced": f"{sign}\\frac{{{3 * over}}}{{{3 * under}}}",
            "sign above": f"\\frac{{{sign}{over}}}{{{under}}}",
        }
        if over > under and over % under:
            forms["mixed"] = f"{sign}{over // under}\\frac{{{over % under}}}{{{under}}}"
        if Fraction(Decimal(over) / Decimal(under)) == Fraction(over, under):
            forms["decimal"] = f"{sign}{Decimal(over) / Decimal(under):f}"
        return forms
    return {}


def _same_form(answer: str) -> dict[str, str]:
    if word := _WORD.fullmatch(answer):
        return {"bare word": word[1], "bold word": f"\\textbf{{{word[1]}}}", "small letters": word[0].lower()}
    if _INTERVAL.fullmatch(answer):
        spaced = answer.replace(",", ", \\, ")
        wide = f"\\left{spaced[:-1]}\\right{spaced[-1]}"
        return {"wide brackets": wide}
    if _LIST.fullmatch(answer):
        parts = [part.strip() for part in answer.split(",")]
        forms = {"other order": ", ".join(reversed(parts)), "a set": f"\\{{{answer}\\}}"}
        return forms | {"with and": f"{', '.join(parts[:-1])} \\text{{ and }} {parts[-1]}"}
    if _FORMULA.fullmatch(answer) and not _WHOLE.fullmatch(answer):
        return {
            "doubled and halved": f"\\frac{{2({answer})}}{{2}}",
            "in brackets": f"({answer})",
            "zero": f"0+{answer}",
        }
    return {}


def latex_near_misses(answer: str, rng: Random) -> dict[str, str]:
    """Texts that end with another answer, though it is nearly the right one."""
    misses = {"two boxes": f"\\boxed{{{answer}}} or \\boxed{{4321}}", "one more member": f"\\boxed{{{answer}, 1234}}"}
    if places := [place for place, sign in enumerate(answer) if sign.isdigit()]:
        place = rng.choice(places)
        other = rng.choice([digit for digit in "123456789" if digit != answer[place]])
        misses["digit changed"] = f"\\boxed{{{answer[:place]}{other}{answer[place + 1 :]}}}"
    if word := _WORD.fullmatch(answer):
        misses["another word"] = f"\\boxed{{\\text{{{word[1][::-1]}x}}}}"
    elif interval := _INTERVAL.fullmatch(answer):
        opening = "[" if interval[1] == "(" else "("
        misses["other bracket"] = f"\\boxed{{{opening}{answer[1:]}}}"
    elif _LIST.fullmatch(answer):
        misses["one member less"] = f"\\boxed{{{answer.rpartition(',')[0]}}}"
    elif _FORMULA.fullmatch(answer) and answer != "0":
        misses |= {"one more": f"\\boxed{{{answer}+1}}", "other sign": f"\\boxed{{-({answer})}}"}
        misses |= {"twice": f"\\boxed{{2({answer})}}", "rounded": f"\\boxed{{{answer}+0.0001}}"}
    return misses


def latex_cheats(prompt: str) -> dict[str, str]:
    """Texts that give no answer, or one that might be anything."""
    return {
        "the question": prompt,
        "an empty box": "\\boxed{}",
        "a box without end": "\\boxed{" * 1_000,
        "a letter": "\\boxed{x}",
        "anything": "\\boxed{\\text{any number}}",
        "all numbers": f"\\boxed{{{', '.join(map(str, range(100)))}}}",
        "plus or minus": "\\boxed{\\pm 1}",
        "infinity": "\\boxed{\\infty}",
        "zero over zero": "\\boxed{\\frac{0}{0}}",
        "a tower": "\\boxed{9^{9^{9^9}}}",
        "everything equals": "\\boxed{1 = 2 = 3 = 4 = 5}",
    }
