"""Instructions whose following can be checked: one function for each of the 25 kinds of the ifeval set.

A check gets the response (never empty) and the arguments of its instruction. Every pattern here reads a text once,
whatever the text: none of them backtracks over an unbounded stretch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from operant.envs.text.language import is_language

Check = Callable[..., bool]
CHECKS: dict[str, Check] = {}

_ABBREVIATIONS = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr|vs|etc|e\.g|i\.e|No|Inc|Ltd|U\.S)\.", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<![.!?…。！？])[.!?…。！？]+[\"'”’)\]*]{0,3}(?=\s|$)|\n\s{0,50}\n")  # noqa: RUF001
_CONSTRAINED = ("my answer is yes.", "my answer is no.", "my answer is maybe.")


def followed(instruction: str, response: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a response follows an instruction; an empty one follows none. KeyError for an unknown instruction."""
    check = CHECKS[instruction]
    given = {name: value for name, value in arguments.items() if value is not None}
    return bool(response.strip()) and check(response, **given)


def _checks(instruction: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[instruction] = check
        return check

    return register


def compare(count: int, relation: str, bound: int) -> bool:
    """The two relations that instructions know."""
    if relation not in ("at least", "less than"):
        raise ValueError(f"there is no relation {relation!r}")
    return count >= bound if relation == "at least" else count < bound


def sentences(text: str) -> int:
    """How many sentences there are."""
    return len(split_sentences(text))


def split_sentences(text: str) -> list[str]:
    """The sentences, without their ends: pieces with a letter or digit, ended by . ! ? or an empty line."""
    plain = _ABBREVIATIONS.sub(lambda found: found[0].replace(".", ""), text)
    return [piece.strip() for piece in _SENTENCE_END.split(plain) if any(map(str.isalnum, piece))]


@_checks("keywords:existence")
def _(response: str, keywords: list[str]) -> bool:
    return all(word.lower() in response.lower() for word in keywords)


@_checks("keywords:forbidden_words")
def _(response: str, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", response, re.IGNORECASE) for word in forbidden_words)


@_checks("keywords:frequency")
def _(response: str, keyword: str, frequency: int, relation: str) -> bool:
    return compare(response.lower().count(keyword.lower()), relation, frequency)


@_checks("keywords:letter_frequency")
def _(response: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return compare(response.lower().count(letter.lower()), let_relation, let_frequency)


@_checks("language:response_language")
def _(response: str, language: str) -> bool:
    return is_language(response, language)


@_checks("length_constraints:number_sentences")
def _(response: str, num_sentences: int, relation: str) -> bool:
    return compare(sentences(response), relation, num_sentences)


@_checks("length_constraints:number_words")
def _(response: str, num_words: int, relation: str) -> bool:
    return compare(len(re.findall(r"\w+", response)), relation, num_words)


@_checks("length_constraints:number_paragraphs")
def _(response: str, num_paragraphs: int) -> bool:
    pieces = [piece.strip() for piece in re.split(r"\*\*\*+", response)]
    # A divider may open or close the text, but two of them hold something between them.
    inner = pieces[1 if not pieces[0] else 0 : len(pieces) - (not pieces[-1])]
    return all(inner) and len(inner) == num_paragraphs


@_checks("length_constraints:nth_paragraph_first_word")
def _(response: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    paragraphs = [piece.strip() for piece in re.split(r"\n\n+", response) if piece.strip()]
    if len(paragraphs) != num_paragraphs or nth_paragraph > len(paragraphs):
        return False
    opening = paragraphs[nth_paragraph - 1].split(None, 1)[0]
    return opening.strip("\"'“”‘’*_#([.,:;!?)]").lower() == first_word.lower()  # noqa: RUF001


@_checks("detectable_content:number_placeholders")
def _(response: str, num_placeholders: int) -> bool:
    return len(re.findall(r"\[[^\[\]\n]+\]", response)) >= num_placeholders


@_checks("detectable_content:postscript")
def _(response: str, postscript_marker: str) -> bool:
    letters = [re.escape(letter) for letter in postscript_marker if letter.isalpha()]
    marker = r"\.\s?".join(letters) + (r"\." if postscript_marker.endswith(".") else r"\.?")
    return re.search(rf"(?:^|\n)[ \t*_]{{0,9}}{marker}[^\n]*\w", response, re.IGNORECASE) is not None


@_checks("detectable_format:number_bullet_lists")
def _(response: str, num_bullets: int) -> bool:
    return len(re.findall(r"^[ \t]{0,40}(?:\*(?!\*)|-(?!-))[ \t]*[^\s*-]", response, re.MULTILINE)) == num_bullets


@_checks("detectable_format:constrained_response")
def _(response: str) -> bool:
    return sum(answer in response.lower() for answer in _CONSTRAINED) == 1


@_checks("detectable_format:number_highlighted_sections")
def _(response: str, num_highlights: int) -> bool:
    found = re.findall(r"\*\*([^\n*]+)\*\*|\*([^\n*]+)\*", response)
    return sum(bool((strong or weak).strip()) for strong, weak in found) >= num_highlights


@_checks("detectable_format:multiple_sections")
def _(response: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"(?<!\w){re.escape(section_spliter)}\s?\d+", response)) >= num_sections


@_checks("detectable_format:json_format")
def _(response: str) -> bool:
    inside = re.sub(r"^```(?:json|JSON|Json)?|```$", "", response.strip()).strip()
    try:
        json.loads(inside)
    except (ValueError, RecursionError):
        return False
    return True


@_checks("detectable_format:title")
def _(response: str) -> bool:
    return any(title.strip() for title in re.findall(r"<<([^<>\n]+)>>", response))


@_checks("combination:two_responses")
def _(response: str) -> bool:
    pieces = [piece.strip() for piece in response.split("******")]
    inner = pieces[1 if not pieces[0] else 0 : len(pieces) - (not pieces[-1])]
    return len(inner) == 2 and all(inner) and inner[0] != inner[1]


@_checks("combination:repeat_prompt")
def _(response: str, prompt_to_repeat: str) -> bool:
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


@_checks("startend:end_checker")
def _(response: str, end_phrase: str) -> bool:
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())


@_checks("startend:quotation")
def _(response: str) -> bool:
    text = response.strip()
    return len(text) > 2 and text.startswith('"') and text.endswith('"')


@_checks("change_case:capital_word_frequency")
def _(response: str, capital_frequency: int, capital_relation: str) -> bool:
    capitals = sum(word.isupper() for word in re.findall(r"[^\W\d_][\w'-]*", response))
    return compare(capitals, capital_relation, capital_frequency)


@_checks("change_case:english_capital")
def _(response: str) -> bool:
    return response.isupper() and is_language(response, "en")


@_checks("change_case:english_lowercase")
def _(response: str) -> bool:
    return response.islower() and is_language(response, "en")


@_checks("punctuation:no_comma")
def _(response: str) -> bool:
    return "," not in response
