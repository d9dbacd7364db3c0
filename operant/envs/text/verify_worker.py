"""What a verifier's worker process does: make the tasks and reward functions, then score one answer after another."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from operant.envs.text.rewards import SECONDS as REWARD_SECONDS
from operant.envs.text.rewards import RewardFunctions, RewardRequest, Value
from operant.envs.text.task import Problem, Task, Verdict, failed

MEMORY = 8 * 2**30  # bytes of address space: a formula may ask for all there is
GRACE = 1.0  # seconds that the pool has to kill a worker before it kills itself

Recipe = tuple[str, dict[str, Any], str | None]
Job = tuple[Problem, str] | RewardRequest
"""An answer to verify, or completions for a reward function."""


def serve(
    pipe: Connection, recipes: Sequence[Recipe], seconds: float | None, rewards: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Do what comes through the pipe until it is closed. The first word back is None, or why it cannot begin."""
    os.setsid()  # whatever an answer starts ends with this group
    # The kernel's alarm with its default action needs no help of an interpreter that is busy with a long sum.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tasks, functions = _make(recipes), RewardFunctions(rewards)
    except Exception as problem:
        pipe.send(f"{type(problem).__name__}: {problem}")
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    pipe.send(None)
    while True:
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError):
            return
        limit = REWARD_SECONDS if isinstance(job, RewardRequest) else tasks[job[0].task].SECONDS
        signal.setitimer(signal.ITIMER_REAL, (seconds or limit) + GRACE)
        reply = _done(job, tasks, functions)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(reply)


def _done(job: Job, tasks: Mapping[str, Task], functions: RewardFunctions) -> Verdict | list[Value]:
    if isinstance(job, RewardRequest):
        return functions.compute(job)
    problem, completion = job
    return verify(tasks[problem.task], problem, completion)


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
