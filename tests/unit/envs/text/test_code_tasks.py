"""mbpp and humaneval: splits and prompts, gold answers, wrong answers, and what the judge says of each."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from operant.envs.sandbox import SandboxDied, bubblewrap
from operant.envs.text import code
from operant.envs.text.code import Checks, verify_program
from operant.envs.text.humaneval import HumanEval
from operant.envs.text.mbpp import Mbpp
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import RIGHT, Problem, Task, Verdict
from operant.envs.text.validate import validate
from operant.errors import UsageError

pytestmark = pytest.mark.skipif(bool(bubblewrap.trouble()), reason=f"no sandbox: {bubblewrap.trouble()}")

BESIDE = Path(__file__).parents[5] / "shared" / "data"
DATA = os.environ.get("OPERANT_DATA") or (str(BESIDE) if BESIDE.is_dir() else "")
needs_data = pytest.mark.skipif(not DATA, reason="no datasets: OPERANT_DATA is not set")

ROW = {
    "task_id": 601,
    "text": "Write a function to double a number.",
    "code": "import math\r\ndef double(x):\r\n  return 2 * x",
    "test_setup_code": "",
    "test_list": ["assert double(2) == 4", "assert double(0) == 0", "assert double(math.inf) == math.inf"],
    "challenge_test_list": [],
}


@pytest.fixture
def small(tmp_path: Path) -> Mbpp:
    (tmp_path / "mbpp").mkdir()
    rows = [ROW, {**ROW, "task_id": 11}, {**ROW, "task_id": 3}, {**ROW, "task_id": 600}]
    (tmp_path / "mbpp" / "mbpp.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return Mbpp(str(tmp_path))


def test_splits_by_task_id(small: Mbpp) -> None:
    assert [problem.id for problem in small.problems("train")] == ["mbpp/train/601"]
    assert [problem.id for problem in small.problems("eval")] == ["mbpp/eval/11"]
    assert [problem.id for problem in small.every] == [
        "mbpp/prompt/3",
        "mbpp/eval/11",
        "mbpp/validation/600",
        "mbpp/train/601",
    ]


def test_the_prompt_shows_the_task_and_its_tests_and_begins_the_answer(small: Mbpp) -> None:
    problem = small.problems("train")[0]
    assert problem.prompt == (
        "You are an expert Python programmer, and here is your task: Write a function to double a number. "
        "Your code should pass these tests:\n\nassert double(2) == 4\nassert double(0) == 0\n"
        "assert double(math.inf) == math.inf\n[BEGIN]\n"
    )
    assert problem.stop == ("[DONE]",)


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ("def double(x):\n    return x + x\n", "right"),
        ("```python\ndef double(x):\n    return x + x\n```", "right"),
        ("def double(x):\n    return x\n", "wrong"),
        ("def triple(x):\n    return 2 * x\n", "wrong"),
        ("this is no program", "wrong"),
        ("  \n", "unparsed"),
    ],
)
def test_verdicts(small: Mbpp, completion: str, outcome: str) -> None:
    verdict = small.verify(small.problems("train")[0], completion)
    assert (verdict.outcome, verdict.score) == (outcome, float(outcome == "right"))


class Near(Mbpp):
    """Judged in this very process, which only tasks of Operant are."""

    __module__ = "operant.envs.text.of_a_test"
    QUICK = True


class Gullible(Near):
    """Takes any program for right."""

    __module__ = "operant.envs.text.of_a_test"

    def verify(self, problem: Problem, completion: str) -> Verdict:
        return RIGHT


@pytest.mark.parametrize("kind", [Near, Gullible])
def test_a_solution_that_fits_two_problems_is_not_held_against_the_judge(kind: type[Mbpp], tmp_path: Path) -> None:
    (tmp_path / "mbpp").mkdir()
    solutions = {"double": "2 * x", "twice": "x + x", "negative": "-x"}
    rows = [
        {**ROW, "task_id": 601 + at, "text": f"Give the {name}.", "code": f"def {name}(x):\n  return {value}",
         "test_list": [f"assert {name}({x}) == {-x if name == 'negative' else 2 * x}" for x in (2, 3)]}
        for at, (name, value) in enumerate(solutions.items())
    ]  # fmt: skip
    (tmp_path / "mbpp" / "mbpp.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = kind(str(tmp_path))
    with Verifiers([task], 1) as verifiers:
        report = validate(task, verifiers, samples=10)
    assert set(report.right_after_all) == {"mbpp/train/601", "mbpp/train/602"}
    assert report.verdict_counts["other"].valid == 10
    assert len(report.verdict_counts["other"].errors) == (10 if kind is Gullible else 0)
    assert report.sound == (kind is Near)


def test_missing_data_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPERANT_DATA", raising=False)
    for task in (Mbpp(), Mbpp(str(tmp_path)), HumanEval()):
        with pytest.raises(UsageError) as error:
            task.problems("eval")
        assert "OPERANT_DATA" in str(error.value)


def test_humaneval_has_no_training_problems() -> None:
    with pytest.raises(UsageError, match="evaluation only"):
        HumanEval().problems("train")


def test_without_a_sandbox_no_task_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "trouble", lambda: "bubblewrap is not installed")
    monkeypatch.setattr("operant.envs.sandbox.docker.engine", lambda: None)
    for make in (Mbpp, HumanEval):
        with pytest.raises(UsageError, match="not installed"):
            make()


def test_objects_of_the_program_are_reached_by_handle() -> None:
    """As in the two problems with trees: the tests build them from a class that the program defines."""
    program = "class Node:\n    def __init__(self, data):\n        self.data, self.left = data, None\n"
    program += "def depth(n):\n    return 1 + depth(n.left) if n else 0\n"
    tests = ("root = Node(1)\nroot.left = Node(2)", "assert depth(root) == 2", "assert root.left.data == 2")
    assert verify_program(program, Checks(("Node", "depth"), (*tests, "assert root.left is root.left"))).score == 1.0
    assert verify_program(program, Checks(("Node", "depth"), (*tests, "assert root == root.left"))).score == 0.0


def test_a_builtin_may_be_a_solution() -> None:
    assert verify_program("listed = list", Checks(("listed",), ("assert listed((1, 2)) == [1, 2]",))).score == 1.0
    assert verify_program("listed = tuple", Checks(("listed",), ("assert listed((1, 2)) == [1, 2]",))).score == 0.0
    assert verify_program("listed = 5", Checks(("listed",), ("assert listed((1, 2)) == [1, 2]",))).score == 0.0


def test_exceptions_of_the_program_can_be_expected() -> None:
    test = "try:\n    f(0)\nexcept ZeroDivisionError:\n    pass\nelse:\n    assert False"
    assert verify_program("def f(x):\n    return 1 / x", Checks(("f",), (test,))).score == 1.0
    assert (
        verify_program(
            "import os\ndef f(x):\n    os._exit(0)", Checks(("f",), (test.replace("ZeroDivisionError", ""),))
        ).score
        == 0.0
    )


def test_failures_of_the_judging_have_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify_program("def f(): pass", Checks(("f",), ("this is no test",))).outcome == "error"
    assert verify_program("def f(): pass", Checks(("f",), ("assert True",))).outcome == "error", "nothing was tested"

    def dead(**_: object) -> None:
        raise SandboxDied("gone")

    monkeypatch.setattr(code, "open_sandbox", dead)
    assert verify_program("def f(): pass", Checks(("f",), ("assert f() is None",))).score is None


def judged(task: Task, answers: list[tuple[Problem, str]]) -> list[Verdict]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda answer: task.verify(*answer), answers))


def golds(task: Mbpp | HumanEval, step: int) -> dict[str, str]:
    """The verdicts on gold answers that are not right."""
    problems = list(task.every if isinstance(task, Mbpp) else task.problems("eval"))[::step]
    verdicts = judged(task, [(problem, task.gold(problem)) for problem in problems])
    return {
        problem.id: f"{v.outcome} {v.note}" for problem, v in zip(problems, verdicts, strict=True) if v.score != 1.0
    }


@needs_data
def test_a_slice_of_the_gold_answers_is_right() -> None:
    for task, step in ((Mbpp(DATA), 70), (Mbpp(DATA, sanitized=True), 60), (HumanEval(DATA), 20)):
        assert golds(task, step) == {}


@needs_data
def test_the_odd_problems_are_right() -> None:
    """Trees from a class of the program; a type as an argument; an import of the solution; a builtin's name."""
    task = Mbpp(DATA)
    odd = [problem for problem in task.every if int(problem.id.split("/")[2]) in (126, 367, 533, 596, 927)]
    assert [verdict.score for verdict in judged(task, [(problem, task.gold(problem)) for problem in odd])] == [1.0] * 5


@needs_data
def test_the_splits_have_their_known_sizes() -> None:
    task, checked = Mbpp(DATA), Mbpp(DATA, sanitized=True)
    assert (len(task.problems("train")), len(task.problems("eval")), len(task.every)) == (374, 500, 974)
    assert (len(checked.every), len(HumanEval(DATA).problems("eval"))) == (427, 164)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mbpp", "mbpp sanitised", "humaneval"])
def test_every_gold_answer_is_right(name: str) -> None:
    assert golds(HumanEval(DATA) if name == "humaneval" else Mbpp(DATA, name == "mbpp sanitised"), 1) == {}


@needs_data
@pytest.mark.slow
def test_none_of_a_thousand_shuffled_answers_is_right() -> None:
    rng = Random(5)
    for task, count in ((Mbpp(DATA), 850), (HumanEval(DATA), 150)):
        problems = list(task.every if isinstance(task, Mbpp) else task.problems("eval"))
        answers: list[tuple[Problem, str]] = []
        while len(answers) < count:
            problem, other = rng.sample(problems, 2)
            wrong = task.wrong(problem, other, rng)
            answers += [(problem, wrong)] if wrong else []
        verdicts = judged(task, answers)
        right = [f"{p.id}: {answer}" for (p, answer), v in zip(answers, verdicts, strict=True) if v.score != 0.0]
        assert right == []
