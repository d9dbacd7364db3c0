"""Environments as tasks, with a child that speaks as a process does but has no environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.envs.text.tasks import make_task
from operant.envs.verifiers import task as module
from operant.envs.verifiers.task import VerifiersTask
from operant.errors import RunError

CHILD = """
import json, os, sys
print("no reply", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    told = {}
    if request["do"] == "open":
        told = {"generation": "classic", "version": "0.3.1", "train": 600, "eval": 3, "pid": os.getpid()}
    if request["do"] == "rows":
        last = min(request["start"] + request["count"], 600)
        told = {"rows": [{"id": str(n), "prompt": f"row {n}"} for n in range(request["start"], last)]}
    if request["do"] == "group":
        if request["row"] == 13:
            sys.exit("killed in the middle of a rollout")
        told = {"rollouts": [{"session": "a", "reward": 0.5, "parts": {"turns": 2, "words": "x"}, "error": None,
            "opening": [{"role": "user", "text": "hello"}], "messages": [{"role": "assistant", "text": "hi"}],
            "truncated": False}]}
    print(json.dumps({"ticket": request["ticket"], **told}), flush=True)
"""


@pytest.fixture
def task(tmp_path: Path) -> Iterator[VerifiersTask]:
    (tmp_path / "child.py").write_text(CHILD)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/child.py\n")
    python.chmod(0o755)
    made = make_task("verifiers:pretended", {"python": str(python)})
    assert isinstance(made, VerifiersTask)
    yield made
    made.process.close()
    module._open.clear()


def test_rows_are_problems_that_are_fetched_when_they_are_asked_for(task: VerifiersTask) -> None:
    train, held_out = task.problems("train"), task.problems("eval")
    assert (len(train), len(held_out)) == (600, 3)
    assert (train[599].id, train[599].prompt) == ("verifiers:pretended/train/599", "row 599")
    assert train[-1] == train[599]
    assert [problem.prompt for problem in train[254:258]] == ["row 254", "row 255", "row 256", "row 257"]
    with pytest.raises(IndexError):
        held_out[3]


def test_a_rollout_is_told_in_full(task: VerifiersTask) -> None:
    begun = task.begin(task.problems("train")[0], 1, "http://nowhere", "policy", {})
    begun.answer.result(20)
    (rollout,) = begun.rollouts()
    assert [message.text for message in rollout.messages] == ["hello", "hi"]
    assert rollout.parts == {"turns": 2.0}
    assert rollout.verdict.score == 0.5


def test_a_environment_that_died_fails_its_rollouts_and_is_begun_again(task: VerifiersTask) -> None:
    problems, first = task.problems("train"), task.facts["pid"]
    begun = task.begin(problems[13], 1, "http://nowhere", "policy", {})
    with pytest.raises(RunError, match="its process ended: killed in the middle of a rollout"):
        begun.answer.result(20)
    again = task.begin(problems[14], 1, "http://nowhere", "policy", {})
    again.answer.result(20)
    assert task.facts["pid"] != first


def test_a_task_of_the_same_arguments_has_the_same_process(task: VerifiersTask) -> None:
    same = make_task(*task.recipe)
    assert isinstance(same, VerifiersTask)
    assert same.process is task.process
