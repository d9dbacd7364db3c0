"""Instructions of the multi-constraint set: a text that follows each, one that just does not, and tricks."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from operant.envs.text.constraint_examples import EXAMPLES, failing, following
from operant.envs.text.constraints import followed
from operant.envs.text.instruction_sets import IfMultiConstraints, RlvrIfEval
from operant.envs.text.open_instruct import EXAMPLES as OBEYED
from operant.envs.text.open_instruct import obeyed
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem
from operant.envs.text.tasks import make_task
from operant.envs.text.validate import validate
from operant.errors import UsageError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "copy:copy": {"prompt_to_repeat": "Say it."},
    "copy:copying_simple": {"prompt_to_repeat": "Say it."},
    "copy:copying_multiple": {"prompt_to_repeat": "Say it.", "N": 3},
    "copy:repeat_phrase": {"phrase": "the red old house", "small_n": 2},
    "new:copy_span_idx": {"prompt_to_repeat": "Write about a cat.", "n_start": 2, "n_end": 9},
    "count:count_increment_word": {"keyword1": "cat", "keyword2": "dog"},
    "count:counting_composition": {"n_sent": 2, "n_words": 3},
    "count:lowercase_counting": {"N": 4},
    "first_word:first_word_answer": {"first_word": "Cat"},
    "first_word:first_word_sent": {"first_word": "Cat"},
    "last_word:last_word_answer": {"last_word": "cat"},
    "last_word:last_word_sent": {"last_word": "cat"},
    "keywords:exclude_word_harder": {"keyword": "cat"},
    "keywords:keyword_specific_position": {"keyword": "cat", "n": 2, "m": 3},
    "keywords:word_count_different_numbers": {"keyword": "cat", "frequency": 3, "relation": "less than"},
    "keywords:word_once": {"keyword": "cat"},
    "letters:letter_counting": {"N": 5, "relation": "at least"},
    "letters:letter_counting2": {"letter": "q", "let_frequency": 3, "let_relation": "less than"},
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_check_says_yes_and_no(kind: str) -> None:
    arguments = ARGUMENTS.get(kind, {})
    assert followed(kind, following(kind, arguments), arguments)
    assert not followed(kind, failing(kind, arguments), arguments)
    assert not followed(kind, "  ", arguments)


CHEATS = [
    ("keywords:palindrome", {}, "I saw a b c"),
    ("keywords:word_once", {"keyword": "cat"}, "concatenate cat and a Cat"),
    ("detectable_format:square_brackets", {}, "[] []"),
    ("copy:copying_multiple", {"prompt_to_repeat": "Say it.", "N": 2}, "******"),
    ("count:counting_composition", {"n_sent": 1, "n_words": 2}, "***\n***"),
    ("paragraphs:paragraphs", {}, "***\n***\n***"),
    ("last_word:last_word_sent", {"last_word": "end"}, "..."),
    ("keywords:start_end", {}, "word"),
    ("detectable_format:bigram_wrapping", {}, "word"),
    ("keywords:word_once", {"keyword": ""}, "text"),
]


@pytest.mark.parametrize(("kind", "arguments", "text"), CHEATS)
def test_tricks_do_not_follow(kind: str, arguments: dict[str, Any], text: str) -> None:
    assert not followed(kind, text, arguments)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("no:such_kind", {}), ("keywords:word_once", {"unknown": 1}), ("letters:letter_counting", {"N": 1})],
)
def test_an_instruction_that_makes_no_sense_is_invalid(kind: str, arguments: dict[str, Any]) -> None:
    row = {"prompt": "?", "ground_truth": [{"instruction_id": [kind], "kwargs": [arguments]}]}
    task = IfMultiConstraints()
    verdict = task.verify(task.problem("x", row), "text")
    assert (verdict.score, verdict.outcome) == (None, "no_gold")
    truth = {"func_name": kind, **arguments}
    assert RlvrIfEval().verify(Problem("x", "rlvr_ifeval", "?", truth), "text").outcome == "no_gold"


def test_a_million_characters_take_no_time() -> None:
    for kind in EXAMPLES:
        arguments = ARGUMENTS.get(kind, {})
        followed(kind, "a. " * 20_000, arguments)
        followed(kind, "<<[***" * 10_000, arguments)


@pytest.mark.parametrize("name", OBEYED)
def test_ground_truths_by_function(name: str) -> None:
    truth = {"keyword_list": ["sun", "moon"], "word": "rain", "N": 2, "forbidden_words": ["rain"], "end_phrase": "All."}
    code = {
        "verify_keywords": ["keyword_list"],
        "verify_keyword_frequency": ["word", "N"],
        "validate_end": ["end_phrase"],
    }
    code |= {"validate_forbidden_words": ["forbidden_words"], "verify_paragraph_count": ["N"]}
    own = {"func_name": name, **{key: truth[key] for key in code.get(name, [])}, "quantifier": None}
    right, wrong = OBEYED[name](own)
    assert obeyed(own, right)
    assert not obeyed(own, wrong)


OTHERS = [
    ({"func_name": "validate_word_constraint", "N": 10, "quantifier": "around"}, "word " * 11, "word " * 12),
    ({"func_name": "verify_sentence_constraint", "N": 2, "quantifier": "at most"}, "A b. C d.", "A b. C d. E f."),
    ({"func_name": "validate_choice", "options": "yes, no, maybe"}, "I say yes.", "yes or no or maybe"),
    ({"func_name": "validate_paragraphs", "N": 2, "first_word": "But", "i": 2}, "A.\n\nBut b.", "But a.\n\nB."),
    ({"func_name": "validate_sections", "N": 2, "section_splitter": "Part"}, "Part 1 a Part 2 b", "Part 1 a"),
    ({"func_name": "verify_postscript", "postscript_marker": "P.S."}, "Text. P.S. More.", "Text. P.S."),
    ({"func_name": "verify_bullet_points", "N": 2}, "* a\n- b", "* a"),
    ({"func_name": "verify_letter_frequency", "letter": "q", "N": 2}, "qaq", "qaqq"),
    ({"func_name": "validate_frequency_capital_words", "N": 1, "quantifier": "at most"}, "ONE two", "ONE TWO"),
    ({"func_name": "validate_repeat_prompt", "original_prompt": "Say it."}, "Say it. Said.", "Said: Say it."),
]


@pytest.mark.parametrize(("truth", "right", "wrong"), OTHERS)
def test_other_ground_truths(truth: dict[str, Any], right: str, wrong: str) -> None:
    assert obeyed(truth, right)
    assert not obeyed(truth, wrong)


def rows_of_constraints(folder: Path) -> Path:
    pairs = [("punctuation:no_comma", None), ("keywords:word_once", {"keyword": "tree"}), ("paragraphs:paragraphs", {})]
    rows = []
    for index in range(30):
        chosen = pairs[: 1 + index % 3]
        truth = [{"instruction_id": [kind for kind, _ in chosen], "kwargs": [given for _, given in chosen]}]
        told = json.dumps(truth) if index % 2 else str(truth)
        rows.append({"messages": [{"role": "user", "content": f"Topic {index}."}], "ground_truth": told})
    path = folder / "if_multi_constraints" / "train.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_is_sound_and_scored_by_shares(tmp_path: Path) -> None:
    rows_of_constraints(tmp_path)
    task = make_task("if_multi_constraints", {"data": str(tmp_path)})
    with Verifiers([task], 1) as verifiers:
        assert validate(task, verifiers, 50).sound
    problem = next(each for each in task.problems("train") if len(each.answer) == 2)
    assert task.verify(problem, "<think>, </think> a tree").score == 1
    found = task.verify(problem, "a tree, a tree")
    assert (found.score, found.outcome) == (0.0, "wrong")
    half = task.verify(problem, "a tree, here")
    assert (half.score, half.outcome, half.note) == (0.5, "partial", "not followed: punctuation:no_comma")


@pytest.mark.parametrize("truth", ["", "[]", "{", [{"instruction_id": ["a"], "kwargs": []}], None, 3])
def test_a_bad_row_is_one_clear_line(truth: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "Ask.", "ground_truth": truth}) + "\n")
    with pytest.raises(UsageError, match="row 0 is not as it should be"):
        make_task("if_multi_constraints", {"path": str(path)}).problems("train")


def test_an_argument_that_is_no_file(tmp_path: Path) -> None:
    task = make_task("deepscaler", {"path": str(tmp_path / "none.jsonl")})
    with pytest.raises(UsageError, match="there is no file"):
        task.problems("train")


def mixed_row(kind: str, truth: str, words: str = "Ask.") -> Problem:
    from operant.envs.text.math_sets import AllenaiRlvr

    task = AllenaiRlvr()
    row = {"messages": [{"role": "user", "content": words}], "ground_truth": truth, "dataset": kind}
    problem = task.problem("allenai_rlvr/train/0", row)
    assert problem is not None
    return problem


def test_the_mixed_set_is_verified_by_the_kind_of_its_rows() -> None:
    task = make_task("allenai_rlvr", {})
    shots = "".join(f"Question: q{i}?\nAnswer: So the answer is {i}.\n\n" for i in range(8))
    words = mixed_row("gsm8k", "12", f"{shots}Question: last?")
    assert words.prompt.count("Q:") == 5
    assert words.prompt.endswith("Q: last?")
    assert task.verify(words, "A: 3 and 9 are 12.").score == 1
    assert task.verify(words, "A: 12, no, 3.").score == 0
    assert task.verify(mixed_row("MATH", "\\frac{1}{2}"), "so $\\boxed{0.5}$").score == 1
    assert task.verify(mixed_row("ifeval", '{"func_name": "validate_lowercase"}'), "all low").score == 1
    assert task.verify(mixed_row("ifeval", '{"func_name": "validate_lowercase"}'), "Not low").score == 0


@pytest.mark.parametrize(("truth", "worth"), [("$1,200", "1200"), ("12%", "12"), ("n/a", None)])
def test_a_number_with_its_unit_has_other_forms_and_what_is_none_has_not(truth: str, worth: str | None) -> None:
    """Rows of other people's files say it in many ways, which must not end a validation."""
    task, problem = make_task("allenai_rlvr", {}), mixed_row("gsm8k", truth)
    assert task.equivalents(problem, Random(0)).get("alone") == worth
    assert bool(task.near_misses(problem, Random(0))) == (worth is not None)
