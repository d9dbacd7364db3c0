"""Tasks by name, one's own among them; and what is said to a name or an argument that does not exist."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from operant.envs.builtin import TASKS
from operant.envs.text.tasks import make_task, task_names
from operant.errors import UsageError

OWN = """
from operant.envs.text.task import RIGHT, WRONG, Problem, Task, Verdict

class Echo(Task):
    def __init__(self, word="hello"):
        self.name = "echo"
        self.word = word
    def problems(self, split):
        return [Problem(f"echo/{split}/0", self.name, self.word, self.word)]
    def verify(self, problem, completion):
        return RIGHT if completion == problem.answer else WRONG
    def gold(self, problem):
        return problem.answer

def half(completion, answer):
    return 0.5

def verdict(completion, answer):
    return Verdict(0.25, "partial")

def seven(completion, answer):
    return 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "module_of_a_test.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "module_of_a_test", raising=False)
    return "module_of_a_test"


@pytest.fixture
def file(tmp_path: Path) -> str:
    rows = [{"prompt": f"{i}+1?", "answer": i + 1, "q": f"question {i}", "key": f"k{i}"} for i in range(200)]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_every_name_has_a_line() -> None:
    assert [name for name, _ in task_names()][: len(TASKS)] == list(TASKS)
    assert all(line for _, line in task_names())


@pytest.mark.parametrize(
    ("name", "arguments", "cause"),
    [
        ("aritmetic", {}, "there is no task 'aritmetic'\n  try: did you mean arithmetic"),
        ("zzzzzz", {}, "there is no task 'zzzzzz'\n  try: operant tasks"),
        ("arithmetic", {"digit": 3}, "task arithmetic has no argument 'digit'\n  try: did you mean digits?"),
        ("largest", {"stile": "bare"}, "task largest has no argument 'stile'\n  try: did you mean style?"),
        ("gsm8k", {"zzz": 3}, "task gsm8k has no argument 'zzz'\n  try: it takes data, shots, max_tokens"),
        ("jsonl", {}, "task jsonl: .*missing 1 required positional argument: 'path'"),
        ("json:loads", {}, "task json:loads: json:loads is not a Task"),
        ("no_such_module:Task", {}, "there is no module 'no_such_module'"),
    ],
)
def test_mistakes(name: str, arguments: dict[str, Any], cause: str) -> None:
    with pytest.raises(UsageError, match=cause):
        make_task(name, arguments)


def test_a_class_of_ones_own(module: str) -> None:
    task = make_task(f"{module}:Echo", {"word": "hi"}, label="mine")
    assert task.problems("eval")[0].prompt == "hi"
    assert task.name == "mine"
    assert task.recipe == (f"{module}:Echo", {"word": "hi"}, "mine")
    with pytest.raises(UsageError, match="has no Ecco\n  try: did you mean Echo"):
        make_task(f"{module}:Ecco", {})


def test_a_file_of_ones_own(file: str) -> None:
    task = make_task(file, {"verifier": "number"})
    train, held = task.problems("train"), task.problems("eval")
    assert len(train) + len(held) == 200
    assert 5 < len(held) < 40
    assert {one.prompt for one in train}.isdisjoint(one.prompt for one in held)
    assert train[0].id == f"mine/train/{train[0].prompt.removesuffix('+1?')}"
    assert all(task.verify(one, task.gold(one) or "").score == 1.0 for one in train)
    assert task.verify(train[0], "none").outcome == "unparsed"


def test_its_fields_may_have_other_names(file: str) -> None:
    task = make_task(file, {"prompt": "q", "id": "key", "eval_path": file})
    assert len(task.problems("train")) == len(task.problems("eval")) == 200
    assert (task.problems("eval")[3].id, task.problems("eval")[3].prompt) == ("mine/eval/k3", "question 3")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({"verifier": "nunber"}, "no verifier 'nunber'\n  try: did you mean number?"),
        ({"prompt": "text"}, "row 1 has no field 'text'; it has prompt, answer, q, key"),
        ({"id": "answer", "eval_path": "/no/file"}, "there is no such file"),
    ],
)
def test_mistakes_in_a_file(file: str, arguments: dict[str, Any], cause: str) -> None:
    with pytest.raises(UsageError, match=cause):
        make_task(file, arguments).problems("eval")


def test_two_rows_of_one_id(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text('{"id": 1, "prompt": "a", "answer": 1}\n{"id": 1, "prompt": "b", "answer": 1}\n')
    with pytest.raises(UsageError, match="two rows have the same id"):
        make_task(str(path), {"eval_share": 0.0}).problems("train")


def test_a_verifier_of_ones_own(file: str, module: str) -> None:
    def judged(function: str) -> tuple[float | None, str]:
        task = make_task(file, {"verifier": f"{module}:{function}"})
        verdict = task.verify(task.problems("train")[0], "x")
        return verdict.score, verdict.outcome

    assert judged("half") == (0.5, "partial")
    assert judged("verdict") == (0.25, "partial")
    with pytest.raises(ValueError, match="returned 7, which is no score"):
        judged("seven")
