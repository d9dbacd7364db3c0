"""What a verifier's worker process does: make the tasks, then verify one answer after another."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from operant.envs.text.task import Problem, Task, Verdict, failed

MEMORY = 8 * 2**30  # bytes of address space: a formula may ask for all there is
GRACE = 1.0  # seconds that the pool has to kill a worker before it kills itself

Recipe = tuple[str, dict[str, Any], str | None]


def serve(pipe: Connection, recipes: Sequence[Recipe], seconds: float | None) -> None:
    """Verify what comes through the pipe until it is closed. The first word back is None, or why it cannot begin."""
    os.setsid()  # whatever an answer starts ends with this group
    # The kernel's alarm with its default action needs no help of an interpreter that is busy with a long sum.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tasks = _make(recipes)
    except Exception as problem:
        pipe.send(f"{type(problem).__name__}: {problem}")
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    pipe.send(None)
    while True:
        try:
            problem, completion = pipe.recv()
        except (EOFError, OSError):
            return
        task = tasks[problem.task]
        signal.setitimer(signal.ITIMER_REAL, (seconds or task.SECONDS) + GRACE)
        verdict = verify(task, problem, completion)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(verdict)


def verify(task: Task, problem: Problem, completion: str) -> Verdict:
    """The task's verdict; what its verifier raises is an error of the verifier, never a wrong answer."""
    try:
        return task.verify(problem, completion)
    except Exception as problem_of_ours:
        return failed(f"{type(problem_of_ours).__name__}: {problem_of_ours}"[:300])


def _make(recipes: Sequence[Recipe]) -> dict[str, Task]:
    from operant.envs.text.tasks import make_task

    tasks = [make_task(name, arguments, label) for name, arguments, label in recipes]
    for task in tasks:
        task.prepare()
    return {task.name: task for task in tasks}
