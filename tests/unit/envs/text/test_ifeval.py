"""Instructions: each check says yes to a text that follows it, and no to one that just does not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from operant.envs.text.instruction_examples import LANGUAGES, breaking, keeping
from operant.envs.text.instructions import CHECKS, followed, sentences
from operant.envs.text.language import language_of
from operant.envs.text.tasks import make_task
from operant.errors import UsageError

EVERY: dict[str, list[dict[str, Any]]] = {
    "keywords:existence": [{"keywords": ["mom", "mother"]}],
    "keywords:forbidden_words": [{"forbidden_words": ["rock", "stone"]}],
    "keywords:frequency": [
        {"relation": "at least", "keyword": "war", "frequency": 3},
        {"relation": "less than", "keyword": "war", "frequency": 3},
    ],
    "keywords:letter_frequency": [
        {"let_relation": "at least", "letter": "#", "let_frequency": 4},
        {"let_relation": "less than", "letter": "t", "let_frequency": 1},
    ],
    "language:response_language": [{"language": name} for name in LANGUAGES],
    "length_constraints:number_sentences": [
        {"relation": "at least", "num_sentences": 5},
        {"relation": "less than", "num_sentences": 5},
    ],
    "length_constraints:number_words": [
        {"relation": "at least", "num_words": 30},
        {"relation": "less than", "num_words": 30},
    ],
    "length_constraints:number_paragraphs": [{"num_paragraphs": 3}],
    "length_constraints:nth_paragraph_first_word": [
        {"num_paragraphs": 4, "nth_paragraph": 2, "first_word": "weekend"},
    ],
    "detectable_content:number_placeholders": [{"num_placeholders": 3}],
    "detectable_content:postscript": [{"postscript_marker": "P.S."}, {"postscript_marker": "P.P.S"}],
    "detectable_format:number_bullet_lists": [{"num_bullets": 3}],
    "detectable_format:constrained_response": [{}],
    "detectable_format:number_highlighted_sections": [{"num_highlights": 2}],
    "detectable_format:multiple_sections": [{"section_spliter": "SECTION", "num_sections": 3}],
    "detectable_format:json_format": [{}],
    "detectable_format:title": [{}],
    "combination:two_responses": [{}],
    "combination:repeat_prompt": [{"prompt_to_repeat": "Write a poem."}],
    "startend:end_checker": [{"end_phrase": "Is there anything else?"}],
    "startend:quotation": [{}],
    "change_case:capital_word_frequency": [
        {"capital_relation": "at least", "capital_frequency": 3},
        {"capital_relation": "less than", "capital_frequency": 3},
    ],
    "change_case:english_capital": [{}],
    "change_case:english_lowercase": [{}],
    "punctuation:no_comma": [{}],
}
CASES = [(name, arguments) for name, several in EVERY.items() for arguments in several]


def test_all_instructions_are_tried() -> None:
    assert len(CHECKS) == 25
    assert set(EVERY) == set(CHECKS)


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_followed_and_broken(name: str, arguments: dict[str, Any]) -> None:
    assert followed(name, keeping(name, arguments), arguments)
    assert not followed(name, breaking(name, arguments), arguments)
    assert not followed(name, "", arguments)
    assert not followed(name, " \n ", arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "response", "kept"),
    [
        ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "Rockets rocked.", True),
        ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "The ROCK.", False),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "- one\n**bold**\n- two\n---", True),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "**bold** and *it*", True),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "** ** * *", False),
        ("detectable_format:constrained_response", {}, "My answer is yes. My answer is no.", False),
        ("detectable_format:json_format", {}, "Sure! {}", False),
        ("combination:two_responses", {}, "Same.\n******\nSame.", False),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\nA\n***\nB\n***", True),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "A\n***\n***\nB", False),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Text\nP. S. more", True),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Text with P.S.", False),
        ("change_case:english_lowercase", {}, "die kinder sind in der schule und nicht zu haus.", False),
    ],
)
def test_fine_points(name: str, arguments: dict[str, Any], response: str, kept: bool) -> None:
    assert followed(name, response, arguments) is kept


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Dr. Smith paid 3.50 to Mr. Jones, e.g. for tea.", 1),
        ('"Really?" he asked. "Yes."', 3),
        ("A heading\n\nA sentence.", 2),
        ("Wait... what?!", 2),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert sentences(text) == count


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(language: str) -> None:
    assert language_of(LANGUAGES[language]) == language


@pytest.mark.parametrize("piece", ["[", "*", "<<", '"', "- ", "******", "\n", "a.", "P.", "{", "[1,", "***\n", " \t"])
def test_no_text_takes_long(piece: str) -> None:
    began = time.monotonic()
    for name, arguments in CASES:
        followed(name, piece * 20_000 + "x", arguments)
    assert time.monotonic() - began < 5


@pytest.fixture
def sample(tmp_path: Path) -> str:
    row = {
        "key": 7,
        "prompt": "Do it.",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:title"],
        "kwargs": [{}, {"num_words": None}],
    }
    (tmp_path / "input_data.jsonl").write_text(json.dumps(row) + "\n")
    return str(tmp_path)


def test_a_prompt_is_right_when_all_of_it_is_followed(sample: str) -> None:
    task = make_task("ifeval", {"data": sample})
    (problem,) = task.problems("eval")
    assert problem.id == "ifeval/eval/7"
    assert task.verify(problem, "<<Title>> and text").score == 1.0
    half = task.verify(problem, "<<Title>>, and text")
    assert (half.score, half.parts, half.note) == (0.0, {"instructions": 0.5}, "not followed: punctuation:no_comma")
    with pytest.raises(UsageError, match="nothing to train on"):
        task.problems("train")
