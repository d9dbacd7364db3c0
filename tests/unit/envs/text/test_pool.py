"""The pool of verifiers: nothing is lost to a slow answer, a dead worker or a broken judge."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task
from operant.envs.text.tasks import make_task
from operant.errors import UsageError
from tests.processes import lives, wait_until

JUDGE = """
import ctypes, os, time

def judge(completion, answer):
    word, _, rest = completion.partition(" ")
    if word == "sleep":
        time.sleep(float(rest))
    if word == "sum":
        10 ** (10 ** 9)  # one long call that never comes back to the interpreter
    if word == "die":
        os._exit(3)
    if word == "die_once" and not os.path.exists(rest):
        open(rest, "w").close()
        os._exit(3)
    if word == "raise":
        raise RuntimeError("broken judge")
    if word == "crash":
        ctypes.string_at(0)
    if word == "spawn":
        pid = os.fork()
        if not pid:
            time.sleep(600)
        open(rest, "w").write(str(pid))
        time.sleep(600)
    return completion.endswith("right")
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    (tmp_path / "judge_of_a_test.py").write_text(JUDGE)
    (tmp_path / "rows.jsonl").write_text('{"prompt": "?", "answer": 1}\n')
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield make_task(str(tmp_path / "rows.jsonl"), {"verifier": "judge_of_a_test:judge", "eval_share": 0.0})
    sys.modules.pop("judge_of_a_test", None)


def only(task: Task) -> Problem:
    return task.problems("train")[0]


def test_every_kind_of_end_is_told_apart(task: Task, tmp_path: Path) -> None:
    problem = only(task)
    said = ["right", "no", "sleep 60", "sum", "die", f"die_once {tmp_path}/once", "raise", "crash", "all is right"]
    with Verifiers([task], workers=2, seconds=1.0) as verifiers:
        verdicts = verifiers.verify_all([(problem, one) for one in said])
        assert [verdict.outcome for verdict in verdicts] == [
            "right", "wrong", "timeout", "timeout", "crash", "wrong", "error", "crash", "right",
        ]  # fmt: skip
        assert [verdict.score for verdict in verdicts] == [1, 0, None, None, None, 0, None, None, 1]
        assert verdicts[6].note == "RuntimeError: broken judge"
        assert "died 2 times" in verdicts[4].note
        assert verifiers.counts == {"right": 2, "wrong": 2, "timeout": 2, "crash": 2, "error": 1}
        assert verifiers.heartbeat().replaced == 7


def test_a_killed_worker_loses_nothing(task: Task) -> None:
    problem = only(task)
    answers = [(problem, "right" if i % 3 else "no") for i in range(3_000)]
    with Verifiers([task], workers=2, seconds=20.0) as verifiers:
        verifiers.verify_all([(problem, "sleep 0.5")] * 2)  # both are there
        verdicts = []
        judging = threading.Thread(target=lambda: verdicts.extend(verifiers.verify_all(answers)))
        judging.start()
        for pid in verifiers.heartbeat().pids:
            time.sleep(0.02)
            os.kill(pid, signal.SIGKILL)
        judging.join()
        assert [verdict.score for verdict in verdicts] == [float(bool(i % 3)) for i in range(3_000)]
        assert verifiers.counts == {"right": 2_000, "wrong": 1_002}
        assert verifiers.heartbeat().replaced == 2


@pytest.mark.usefixtures("task")
def test_a_worker_that_dies_as_it_starts_is_replaced(tmp_path: Path) -> None:
    dying = f"""
import multiprocessing, os
from operant.envs.text.jsonl import JsonlTask as Base

class Dying(Base):
    def __init__(self, **arguments):
        super().__init__({str(tmp_path / "rows.jsonl")!r}, verifier="exact", eval_share=0.0)
        if multiprocessing.parent_process() and not os.path.exists({str(tmp_path / "flag")!r}):
            open({str(tmp_path / "flag")!r}, "w").close()
            os._exit(9)
"""
    (tmp_path / "dying_task_of_a_test.py").write_text(dying)
    mortal = make_task("dying_task_of_a_test:Dying", {})
    with Verifiers([mortal], workers=1) as verifiers:
        assert verifiers.verify(only(mortal), "1").outcome == "right"
        assert verifiers.heartbeat().replaced == 1


def test_what_an_answer_started_ends_with_its_worker(task: Task, tmp_path: Path) -> None:
    with Verifiers([task], workers=1, seconds=0.5) as verifiers:
        assert verifiers.verify(only(task), f"spawn {tmp_path}/pid").outcome == "timeout"
    child = int((tmp_path / "pid").read_text())
    assert wait_until(lambda: not lives(child))


def test_closing_ends_what_runs(task: Task) -> None:
    verifiers = Verifiers([task], workers=1, seconds=60.0)
    verifiers.verify(only(task), "right")
    running = verifiers.submit(only(task), "sleep 50")
    waiting = verifiers.submit(only(task), "right")
    while not verifiers.heartbeat().verifying:
        time.sleep(0.01)
    assert verifiers.heartbeat().waiting == 1
    (pid,) = verifiers.heartbeat().pids
    began = time.monotonic()
    verifiers.close()
    assert time.monotonic() - began < 5
    assert running.result().outcome == "error"
    assert waiting.cancelled()
    assert wait_until(lambda: not lives(pid))


def test_quick_tasks_need_no_worker() -> None:
    task = make_task("arithmetic", {})
    with Verifiers([task], workers=3) as verifiers:
        problem = task.problems("eval")[0]
        assert verifiers.verify(problem, str(problem.answer)).score == 1.0
        assert verifiers.heartbeat().pids == ()
        assert verifiers.counts == {"right": 1}


def test_no_workers_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="at least one worker"):
        Verifiers([], workers=0)


def test_a_power_that_would_take_sympy_minutes_is_wrong_in_time(data: str) -> None:
    pytest.importorskip("math_verify")
    task = make_task("math", {"data": data})
    problem = next(one for one in task.problems("eval") if one.answer["answer"] == "p - q")
    with Verifiers([task], workers=1, seconds=2.0) as verifiers:
        bomb = verifiers.verify(problem, r"\boxed{(x+y+z+w+v)^{300}}")
        assert (bomb.score, bomb.outcome) in ((0.0, "wrong"), (None, "undecided"))
        assert verifiers.verify(problem, r"\boxed{-q+p}").outcome == "right"


@pytest.mark.slow
def test_a_thousand_hanging_and_a_thousand_crashing_verdicts_leave_the_pace(task: Task) -> None:
    problem = only(task)
    with Verifiers([task], workers=4, seconds=0.2) as verifiers:
        verifiers.verify_all([(problem, "right")] * 200)
        before = pace(verifiers, problem)
        hung = verifiers.verify_all([(problem, ("sleep 60", "sum", "right")[i % 3]) for i in range(1_500)])
        after_hanging = pace(verifiers, problem)
        died = verifiers.verify_all([(problem, ("die", "crash", "right")[i % 3]) for i in range(1_500)])
        after = pace(verifiers, problem)
        assert {verdict.outcome for verdict in hung[2::3] + died[2::3]} == {"right"}
        assert {(verdict.score, verdict.outcome) for verdict in hung[::3] + hung[1::3]} == {(None, "timeout")}
        assert {(verdict.score, verdict.outcome) for verdict in died[::3] + died[1::3]} == {(None, "crash")}
        assert verifiers.heartbeat().replaced == 1_000 + 2 * 1_000
        pids = verifiers.heartbeat().pids
    assert after_hanging > before / 3, "a shared machine may be slower at times, but not by so much"
    assert after > before / 3
    assert wait_until(lambda: not any(map(lives, pids)))


def pace(verifiers: Verifiers, problem: Problem) -> float:
    """Good verdicts per second."""
    began = time.perf_counter()
    verifiers.verify_all([(problem, "right")] * 4_000)
    return 4_000 / (time.perf_counter() - began)


def test_a_fork_server_that_was_killed_is_started_again(task: Task) -> None:
    problem = only(task)
    with Verifiers([task], workers=1, seconds=5.0) as verifiers:
        assert verifiers.verify(problem, "right").score == 1.0
        (worker,) = verifiers.heartbeat().pids
        server = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(server, signal.SIGKILL)
        assert verifiers.verify(problem, "die").outcome == "crash"
        assert verifiers.verify(problem, "right").score == 1.0
    assert wait_until(lambda: not lives(worker))


WHATEVER = """
from operant.envs.text.task import Problem, Task, Verdict

RETURNS = {
    "none": None,
    "text": "right",
    "number": 1.0,
    "truth": True,
    "pair": (1.0, "right"),
    "too much": Verdict(2.0, "right"),
    "too little": Verdict(-0.5, "wrong"),
    "words for parts": Verdict(1.0, "right", parts={"length": "long"}),
    "parts without end": Verdict(1.0, "right", parts={"length": float("inf")}),
}


class Whatever(Task):
    def __init__(self):
        self.name = "whatever"

    def problems(self, split):
        return [Problem("whatever/0", self.name, "?", 1)]

    def gold(self, problem):
        return None

    def verify(self, problem, completion):
        return RETURNS[completion] if completion in RETURNS else Verdict(1.0, completion)
"""


def test_what_is_no_verdict_on_one_answer_is_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whatever_of_a_test.py").write_text(WHATEVER)
    monkeypatch.syspath_prepend(tmp_path)
    task = make_task("whatever_of_a_test:Whatever", {})
    said = ["none", "text", "number", "truth", "pair", "too much", "too little", "words for parts"]
    said += ["parts without end", "splendid", "error", "right"]
    with Verifiers([task], workers=1) as verifiers:
        *invalid, right = verifiers.verify_all([(task.problems("train")[0], one) for one in said])
    assert [(each.score, each.outcome) for each in invalid] == [(None, "error")] * 11
    assert "the verifier returned None, which is no Verdict" in invalid[0].note
    assert "a score of 2.0, which is not from 0 to 1" in invalid[5].note
    assert right.score == 1.0
