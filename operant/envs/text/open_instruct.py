"""Checks of RLVR-IFeval: one instruction a prompt, whose ground truth names a function and its arguments."""

# The arguments have the names that the dataset gives them.
# ruff: noqa: N803
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from operant.envs.text.instructions import CHECKS, Check, split_sentences
from operant.envs.text.language import is_language


def obeyed(truth: Mapping[str, Any], response: str) -> bool:
    """Whether a response does what a ground truth asks, which an empty one never does.

    A function that is not known, or whose arguments do not fit it, raises: nobody can say who obeys it.
    """
    check = FUNCTIONS[str(truth.get("func_name"))]
    given = {name: value for name, value in truth.items() if name != "func_name" and value is not None}
    return bool(response.strip()) and bool(check(response.strip(), **given))


def quantified(count: int, quantifier: str, bound: int, around: int) -> bool:
    """At least, at most, or within `around` of a bound."""
    return {
        "at least": count >= bound,
        "at most": count <= bound,
        "around": abs(count - bound) <= around,
    }.get(quantifier, False)


def paragraph_count(response: str, N: int) -> bool:
    """So many paragraphs, divided by * * *, none of them empty."""
    parts = [part.strip() for part in response.split("* * *")]
    return len(parts) == N and all(parts)


def opening_word(response: str, N: int, first_word: str, i: int) -> bool:
    """So many paragraphs, divided by empty lines, the i-th of which begins with the word."""
    parts = response.split("\n\n")
    return len(parts) == N and 0 < i <= N and parts[i - 1].strip().startswith(first_word)


def section_count(response: str, N: int, section_splitter: str) -> bool:
    """So many sections, each after the splitter; nothing before the first."""
    parts = response.split(section_splitter)
    return len(parts[1:] if not parts[0] else parts) == N


def chosen(response: str, options: Any) -> bool:
    """Exactly one of the options is named."""
    listed = re.split(r",|/|\||;| or ", options) if isinstance(options, str) else [str(each) for each in options]
    wanted = {" ".join(each.lower().split()).strip("'\"() .") for each in listed} - {""}
    said = " ".join(response.lower().split())
    return sum(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", said) is not None for each in wanted) == 1


FUNCTIONS: dict[str, Check] = {
    "verify_keywords": lambda response, keyword_list: CHECKS["keywords:existence"](response, keyword_list),
    "verify_keyword_frequency": lambda response, word, N: (
        re.findall(r"\b\w+\b", response.lower()).count(word.lower()) == N
    ),
    "validate_forbidden_words": lambda response, forbidden_words: (
        not any(word.lower() in response.lower() for word in forbidden_words)
    ),
    "verify_letter_frequency": lambda response, letter, N: len(letter) == 1 and response.count(letter) == N,
    "validate_response_language": is_language,
    "verify_paragraph_count": paragraph_count,
    "validate_word_constraint": lambda response, N, quantifier: quantified(
        len(response.split()), quantifier, N, max(round(N * 0.1), 1)
    ),
    "verify_sentence_constraint": lambda response, N, quantifier: quantified(
        len(split_sentences(response)), quantifier, N, 1
    ),
    "validate_paragraphs": opening_word,
    "verify_postscript": lambda response, postscript_marker: bool(response.partition(postscript_marker)[2].strip()),
    "validate_placeholders": lambda response, N: CHECKS["detectable_content:number_placeholders"](response, N),
    "verify_bullet_points": lambda response, N: (
        sum(line.strip().startswith(("*", "-")) for line in response.splitlines()) == N
    ),
    "validate_title": CHECKS["detectable_format:title"],
    "validate_choice": chosen,
    "validate_highlighted_sections": lambda response, N: CHECKS["detectable_format:number_highlighted_sections"](
        response, N
    ),
    "validate_sections": section_count,
    "validate_json_format": CHECKS["detectable_format:json_format"],
    "validate_repeat_prompt": lambda response, original_prompt: response.startswith(original_prompt.strip()),
    "validate_two_responses": CHECKS["combination:two_responses"],
    "validate_uppercase": str.isupper,
    "validate_lowercase": str.islower,
    "validate_frequency_capital_words": lambda response, N, quantifier: quantified(
        len(re.findall(r"\b[A-Z]+\b", response)), quantifier, N, 0
    ),
    "validate_end": lambda response, end_phrase: response.endswith(end_phrase.strip()),
    "validate_quotation": CHECKS["startend:quotation"],
    "validate_no_commas": CHECKS["punctuation:no_comma"],
}

Pair = tuple[str, str]
EXAMPLES: dict[str, Callable[[Mapping[str, Any]], Pair]] = {
    "verify_keywords": lambda truth: (" and ".join(truth["keyword_list"]), "Qzx."),
    "verify_keyword_frequency": lambda truth: (
        f"{truth['word']} " * truth["N"] + "?",
        f"{truth['word']} " * (truth["N"] + 1),
    ),
    "validate_forbidden_words": lambda truth: ("Qzx.", f"Qzx {truth['forbidden_words'][0]}."),
    "verify_paragraph_count": lambda truth: (
        "\n* * *\n".join(["Text."] * truth["N"]),
        "\n* * *\n".join(["Text."] * (truth["N"] + 1)),
    ),
    "validate_title": lambda truth: ("<<A title>> and text", "A title and text"),
    "validate_json_format": lambda truth: ('{"a": 1}', "{a: 1}"),
    "validate_two_responses": lambda truth: ("One.\n******\nTwo.", "One.\n******\nOne."),
    "validate_uppercase": lambda truth: ("ALL OF IT.", "All of it."),
    "validate_lowercase": lambda truth: ("all of it.", "All of it."),
    "validate_end": lambda truth: (f"Text. {truth['end_phrase']}", f"{truth['end_phrase']} And text."),
    "validate_quotation": lambda truth: ('"All of it."', "All of it."),
    "validate_no_commas": lambda truth: ("None here.", "Here, there is one."),
}
"""A text that obeys and one that does not, from the meaning of each; the others are tried by tests."""
