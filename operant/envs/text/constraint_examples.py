"""The shortest texts that follow, and that break, an instruction of the multi-constraint set.

As in `instruction_examples` they are written from the meaning of each instruction, without a look at its check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from operant.envs.text.instruction_examples import NOTHING, breaking, keeping

Given = Mapping[str, Any]
Pair = tuple[str, str]


def following(instruction: str, arguments: Given) -> str:
    """A text that follows an instruction."""
    return _pair(instruction, arguments)[0] if instruction in EXAMPLES else keeping(instruction, arguments)


def failing(instruction: str, arguments: Given) -> str:
    """A text that does not follow an instruction."""
    return _pair(instruction, arguments)[1] if instruction in EXAMPLES else breaking(instruction, arguments)


def _pair(instruction: str, arguments: Given) -> Pair:
    return EXAMPLES[instruction]({name: value for name, value in arguments.items() if value is not None})


def _times(word: str, count: int) -> str:
    return f"{word} " * count + NOTHING


def _related(given: Given, bound: str, thing: Callable[[int], str]) -> Pair:
    """As many things as the bound says, and one fewer, in the order of the relation."""
    many, few = thing(given[bound]), thing(given[bound] - 1)
    relation = given.get("relation") or given.get("let_relation")
    return (many, few) if relation == "at least" else (few, many)


def _placed(given: Given) -> Pair:
    sentences = ["It is so."] * (given["n"] - 1)
    right = " ".join([*sentences, " ".join(["word"] * (given["m"] - 1) + [given["keyword"]]) + "."])
    return right, " ".join([*sentences, "And nothing."])


def _composed(given: Given) -> Pair:
    sentence = " ".join(["Word"] * given["n_words"]) + "."
    part = " ".join([sentence] * given["n_sent"])
    return "\n***\n".join([part] * 3), "\n***\n".join([part] * 2)


EXAMPLES: dict[str, Callable[[Given], Pair]] = {
    "copy:copy": lambda given: (given["prompt_to_repeat"], f"{given['prompt_to_repeat']} And more."),
    "copy:copying_simple": lambda given: (given["prompt_to_repeat"], f"Here: {given['prompt_to_repeat']}"),
    "copy:copying_multiple": lambda given: (
        "\n******\n".join([given["prompt_to_repeat"]] * given["N"]),
        "\n******\n".join([given["prompt_to_repeat"]] * (given["N"] + 1)),
    ),
    "copy:repeat_phrase": lambda given: (
        f"{given['phrase']} so " * given["small_n"],
        f"{given['phrase']} so " * (given["small_n"] + 1),
    ),
    "new:copy_span_idx": lambda given: (
        given["prompt_to_repeat"][given["n_start"] : given["n_end"]],
        given["prompt_to_repeat"] + " and all of it",
    ),
    "count:count_increment_word": lambda given: (
        f"{given['keyword1']} {given['keyword2']} {given['keyword2']}",
        f"{given['keyword1']} {given['keyword2']} {given['keyword2']} {given['keyword2']}",
    ),
    "count:count_unique": lambda given: ("Every word is another.", "A word and a word."),
    "count:counting_composition": _composed,
    "count:lowercase_counting": lambda given: ("word " * given["N"] + "END", "word " * (given["N"] + 1)),
    "detectable_format:bigram_wrapping": lambda given: ("<<two words>> <<and two>>", "<<two words>> and two"),
    "detectable_format:sentence_hyphens": lambda given: ("It is so.-It was so.", "It is so. - It was so."),
    "detectable_format:square_brackets": lambda given: ("[every] [word]", "[every word]"),
    "first_word:first_word_answer": lambda given: (f"{given['first_word']} text.", f"Text {given['first_word']}."),
    "first_word:first_word_sent": lambda given: (
        f"{given['first_word']} is it. {given['first_word']} was it.",
        f"{given['first_word']} is it. Qzx was it.",
    ),
    "last_word:last_word_answer": lambda given: (f"Text {given['last_word']}.", f"{given['last_word']} text."),
    "last_word:last_word_sent": lambda given: (
        f"It is {given['last_word']}. It was {given['last_word']}.",
        f"It is {given['last_word']}. It was qzx.",
    ),
    "keywords:exclude_word_harder": lambda given: (NOTHING, f"There it is, {given['keyword']}, and more."),
    "keywords:keyword_specific_position": _placed,
    "keywords:no_adjacent_consecutive": lambda given: ("Zoo every time.", "A boy."),
    "keywords:palindrome": lambda given: ("The level is low.", "I saw a thing."),
    "keywords:start_end": lambda given: ("So it was said so.", "So it was said then."),
    "keywords:word_count_different_numbers": lambda given: _related(
        given, "frequency", lambda count: _times(given["keyword"], count)
    ),
    "keywords:word_once": lambda given: (_times(given["keyword"], 1), _times(given["keyword"], 2)),
    "letters:letter_counting": lambda given: _related(given, "N", lambda count: "a" * count + " 1"),
    "letters:letter_counting2": lambda given: _related(
        given, "let_frequency", lambda count: f"{given['letter']} " * count + "?"
    ),
    "paragraphs:paragraphs": lambda given: ("One.\n***\nTwo.", "One.\n***\nTwo.\n***\nThree."),
    "paragraphs:paragraphs2": lambda given: ("One.\n\nTwo.", "One.\n\nTwo.\n\nThree."),
    "punctuation:punctuation_dot": lambda given: ("No such mark", "Here."),
    "punctuation:punctuation_exclamation": lambda given: ("No such mark.", "Here!"),
}
