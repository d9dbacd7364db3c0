"""Instructions of the multi-constraint set whose following can be checked, beside the 25 kinds of ifeval.

As there a check gets a response that is not empty and the arguments of its instruction, and no pattern backtracks over
an unbounded stretch.
"""

# The arguments have the names that the dataset gives them.
# ruff: noqa: N803
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from operant.envs.text.instructions import CHECKS, Check, compare, split_sentences

SHORTEST_PALINDROME = 3

_WORD = re.compile(r"\w+")


def followed(instruction: str, response: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a response follows an instruction, which an empty one never does.

    An instruction that is not known, or whose arguments do not fit it, raises: nobody can say who follows it.
    """
    check = CONSTRAINTS[instruction]
    given = {name: value for name, value in arguments.items() if value is not None}
    return bool(response.strip()) and bool(check(response.strip(), **given))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _count(word: str, text: str) -> int:
    """How often a word or phrase stands in a text, in either case, between other words."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)) if word.strip() else 0


def _same(text: str, other: str) -> bool:
    return bool(other.strip()) and text.strip().lower() == other.strip().lower()


def _bare(word: str) -> str:
    return re.sub(r"\W", "", word).lower()


def _divided(text: str, divider: str) -> list[str] | None:
    """The parts between dividers, which may also open or close the text; None where two hold nothing between them."""
    parts = [part.strip() for part in re.split(divider, text)]
    inner = parts[1 if not parts[0] else 0 : len(parts) - (not parts[-1])]
    return inner if all(inner) else None


def _each_sentence(text: str, holds: Callable[[list[str]], bool]) -> bool:
    found = [sentence.split() for sentence in split_sentences(text)]
    return bool(found) and all(words and holds(words) for words in found)


def copied_times(response: str, prompt_to_repeat: str, N: int) -> bool:
    """The text N times, divided by ******."""
    parts = response.split("******")
    return len(parts) == N and all(_same(part, prompt_to_repeat) for part in parts)


def phrase_varied(response: str, phrase: str, small_n: int) -> bool:
    """The phrase so often, each time with at most one word changed, of which neither the first nor the last."""
    words = phrase.split()
    if len(words) < 2:
        return False
    spoken, found = response.split(), 0
    for start in range(len(spoken) - len(words) + 1):
        window = [word.strip(".,;:!?\"'()") for word in spoken[start : start + len(words)]]
        changed = sum(ours != theirs for ours, theirs in zip(window, words, strict=True))
        found += changed <= 1 and window[0] == words[0] and window[-1] == words[-1]
    return found == small_n


def composed(response: str, n_sent: int, n_words: int) -> bool:
    """Three paragraphs divided by ***, each of so many sentences of so many words."""
    parts = _divided(response, r"\*\*\*")
    if parts is None or len(parts) != 3:
        return False
    sentences = [split_sentences(part) for part in parts]
    return all(len(each) == n_sent and all(len(_words(one)) == n_words for one in each) for each in sentences)


def hyphenated(response: str) -> bool:
    """Sentences joined by hyphens without spaces."""
    parts = response.split("-")
    return all(part and part == part.strip() and len(split_sentences(part)) == 1 for part in parts)


def paired(response: str) -> bool:
    """Every two words wrapped in << and >>."""
    words = response.split()
    pairs = list(zip(words[::2], words[1::2], strict=False))
    return bool(pairs) and all(one.startswith("<<") and other.endswith(">>") for one, other in pairs)


def placed(response: str, keyword: str, n: int, m: int) -> bool:
    """The word as the m-th of the n-th sentence."""
    sentences = split_sentences(response)
    words = _words(sentences[n - 1]) if 0 < n <= len(sentences) else []
    return 0 < m <= len(words) and words[m - 1] == keyword


def no_neighbours(response: str) -> bool:
    """No two words after each other begin with neighbours in the alphabet."""
    firsts = [word[0].lower() for word in response.split()]
    return not any(ord(after) - ord(before) == 1 for before, after in pairwise(firsts))


def palindrome(response: str) -> bool:
    """A word that reads the same backwards, of three letters at least: "a" is no achievement."""
    words = [word.lower() for word in _words(response)]
    return any(len(word) >= SHORTEST_PALINDROME and word == word[::-1] for word in words)


def same_ends(response: str) -> bool:
    """The first word is the last one too."""
    words = _words(response.lower())
    return len(words) > 1 and words[0] == words[-1]


def _unique(response: str) -> bool:
    words = _words(response.lower())
    return len(words) == len(set(words))


CONSTRAINTS: dict[str, Check] = {
    **CHECKS,
    "copy:copy": lambda response, prompt_to_repeat: _same(response, prompt_to_repeat),
    "copy:copying_simple": lambda response, prompt_to_repeat: _same(response, prompt_to_repeat),
    "copy:copying_multiple": copied_times,
    "copy:repeat_phrase": phrase_varied,
    "new:copy_span_idx": lambda response, prompt_to_repeat, n_start, n_end: _same(
        response, prompt_to_repeat[n_start:n_end]
    ),
    "count:count_increment_word": lambda response, keyword1, keyword2: (
        _count(keyword1, response) == 1 and _count(keyword2, response) == 2
    ),
    "count:count_unique": _unique,
    "count:counting_composition": composed,
    "count:lowercase_counting": lambda response, N: len(re.findall(r"\b[a-z]+\b", response)) <= N,
    "detectable_format:bigram_wrapping": paired,
    "detectable_format:sentence_hyphens": hyphenated,
    "detectable_format:square_brackets": lambda response: all(
        len(word) > 2 and word[0] == "[" and word[-1] == "]" for word in response.split()
    ),
    "first_word:first_word_answer": lambda response, first_word: _bare(response.split()[0]) == _bare(first_word),
    "first_word:first_word_sent": lambda response, first_word: _each_sentence(
        response, lambda words: _bare(words[0]) == _bare(first_word)
    ),
    "last_word:last_word_answer": lambda response, last_word: _bare(response.split()[-1]) == _bare(last_word),
    "last_word:last_word_sent": lambda response, last_word: _each_sentence(
        response, lambda words: _bare(words[-1]) == _bare(last_word)
    ),
    "keywords:exclude_word_harder": lambda response, keyword: not _count(keyword, response),
    "keywords:keyword_specific_position": placed,
    "keywords:no_adjacent_consecutive": no_neighbours,
    "keywords:palindrome": palindrome,
    "keywords:start_end": same_ends,
    "keywords:word_count_different_numbers": lambda response, keyword, frequency, relation: compare(
        _count(keyword, response), relation, frequency
    ),
    "keywords:word_once": lambda response, keyword: _count(keyword, response) == 1,
    "letters:letter_counting": lambda response, N, relation: compare(
        len(re.findall(r"[a-zA-Z]", response)), relation, N
    ),
    "letters:letter_counting2": CHECKS["keywords:letter_frequency"],
    "paragraphs:paragraphs": lambda response: len(_divided(response, r"\*\*\*") or ()) == 2,
    "paragraphs:paragraphs2": lambda response: len(_divided(response, r"\n\n") or ()) == 2,
    "punctuation:punctuation_dot": lambda response: "." not in response,
    "punctuation:punctuation_exclamation": lambda response: "!" not in response,
}
