"""Verifiers that run in the training process: no text costs them much, and those of other packages do not run there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from operant.envs.text.instructions import CHECKS
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task
from operant.envs.text.tasks import make_task
from operant.envs.text.verify_worker import verify

LENGTH = 20_000
NASTY = {
    "full stops": "." * LENGTH + "x",
    "digits": "9" * LENGTH,
    "thousands": "1,111" * (LENGTH // 5) + "1",
    "brackets": "[" * LENGTH,
    "round brackets": "(" * LENGTH,
    "boxes": "\\boxed{" * (LENGTH // 7),
    "dollars": "$" * LENGTH,
    "stars": "*a" * (LENGTH // 2),
    "hashes": "#" * LENGTH,
    "answers": "answer is " * (LENGTH // 10),
    "labels": "answer:**" * (LENGTH // 9),
    "spaces": " " * LENGTH + "x",
    "lines": "\n \n" * (LENGTH // 3),
    "minus": "-" * LENGTH,
    "abbreviations": "e.g." * (LENGTH // 4),
    "quotes": '."' * (LENGTH // 2) + "x",
    "angles": "<<a" * (LENGTH // 3),
    "postscripts": "\nP.S." * (LENGTH // 5),
    "no text": "\ud800" * 10,
}
MOST_SECONDS = 0.25  # on a busy machine; most take less than a hundredth of that
TASKS = ("arithmetic", "countdown", "largest", "count_letters", "sort", "copy")
RUNS: list[tuple[str, dict[str, Any]]] = [(name, {"style": style}) for name in TASKS for style in ("words", "bare")]


def slowest(task: Task, problem: Problem) -> tuple[float, str]:
    took = {}
    for name, text in NASTY.items():
        began = time.process_time()
        assert verify(task, problem, text).score != 1.0, name
        took[name] = time.process_time() - began
    return max((seconds, name) for name, seconds in took.items())


@pytest.mark.parametrize(("name", "arguments"), RUNS)
def test_no_text_takes_long(name: str, arguments: dict[str, Any]) -> None:
    task = make_task(name, arguments)
    seconds, text = slowest(task, task.problems("eval")[0])
    assert seconds < MOST_SECONDS, text


def test_no_text_takes_long_in_a_word_problem() -> None:
    problem = Problem("gsm8k/eval/0", "gsm8k", "How many apples are there?", {"number": "17", "solution": "#### 17"})
    seconds, text = slowest(make_task("gsm8k", {}), problem)
    assert seconds < MOST_SECONDS, text


ARGUMENTS: dict[str, Any] = {
    "keywords": ["sun"], "forbidden_words": ["rain"], "keyword": "sun", "frequency": 3, "relation": "at least",
    "letter": "q", "let_frequency": 3, "let_relation": "at least", "language": "en", "num_sentences": 3, "num_words": 9,
    "num_paragraphs": 3, "nth_paragraph": 2, "first_word": "sun", "num_placeholders": 2, "postscript_marker": "P.S.",
    "num_bullets": 2, "num_highlights": 2, "section_spliter": "Part", "num_sections": 2, "prompt_to_repeat": "Say it.",
    "end_phrase": "All.", "capital_frequency": 3, "capital_relation": "at least",
}  # fmt: skip


@pytest.mark.parametrize("kind", CHECKS)
def test_no_text_takes_long_for_an_instruction(kind: str) -> None:
    check = CHECKS[kind]
    names = check.__code__.co_varnames[1 : check.__code__.co_argcount]
    for name, text in NASTY.items():
        began = time.process_time()
        check(text, **{each: ARGUMENTS[each] for each in names})
        assert time.process_time() - began < MOST_SECONDS, name


def test_a_task_of_another_package_is_never_verified_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "quick_of_a_test.py").write_text(
        "import time\nfrom operant.envs.text.arithmetic import Arithmetic\n\n"
        "class Slow(Arithmetic):\n    QUICK = True\n"
        "    def verify(self, problem, completion):\n        time.sleep(60)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    task = make_task("quick_of_a_test:Slow", {})
    with Verifiers([task], workers=1, seconds=0.3) as verifiers:
        verdict = verifiers.verify(task.problems("eval")[0], "1")
    assert (verdict.score, verdict.outcome) == (None, "timeout")
