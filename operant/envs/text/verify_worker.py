"""What a verifier's processes do: one makes the tasks and reward functions and forks workers from itself; each worker
scores one answer after another.

A worker that hangs or dies costs a fork, which takes milliseconds, and not a start of Python with all its imports.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any, NoReturn

from operant.envs.text.rewards import SECONDS as REWARD_SECONDS
from operant.envs.text.rewards import RewardFunctions, RewardRequest, Value
from operant.envs.text.task import Problem, Task, Verdict, failed

MEMORY = 8 * 2**30  # bytes of address space: a formula may ask for all there is
GRACE = 1.0  # seconds that the pool has to kill a worker before it kills itself
REAP_SECONDS = 1.0

Recipe = tuple[str, dict[str, Any], str | None]
Job = tuple[Problem, str] | RewardRequest
"""An answer to verify, or completions for a reward function."""
FORK = 0
"""An order to the fork server; any other number is a worker that it shall end."""


def serve_forks(
    pipe: Connection, recipes: Sequence[Recipe], seconds: float | None, rewards: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Fork and end workers as ordered, until the pipe is closed, and then end them all.

    The first word back is None, or why this cannot begin. The answer to `FORK` is the worker's number and a pipe to it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tasks, functions = _make(recipes), RewardFunctions(rewards)
    except Exception as problem:
        pipe.send(f"{type(problem).__name__}: {problem}")
        return
    pipe.send(None)
    workers: set[int] = set()
    with contextlib.suppress(EOFError, OSError):
        while True:
            if order := pipe.recv():
                _end(order, workers)
            else:
                workers.add(_forked(pipe, tasks, functions, seconds))
    for worker in tuple(workers):
        _end(worker, workers)


def _forked(pipe: Connection, tasks: Mapping[str, Task], functions: RewardFunctions, seconds: float | None) -> int:
    theirs, ours = Pipe()
    worker = os.fork()
    if not worker:
        pipe.close()
        theirs.close()
        _work(ours, tasks, functions, seconds)
    ours.close()
    pipe.send(worker)
    send_handle(pipe, theirs.fileno(), os.getppid())
    theirs.close()
    return worker


def _end(worker: int, workers: set[int]) -> None:
    """End a worker and all that it started. Until it is waited for here its number is nobody else's."""
    if worker not in workers:
        return
    kill_group(worker)
    end = time.monotonic() + REAP_SECONDS
    while os.waitpid(worker, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.0005)
    workers.discard(worker)


def kill_group(pid: int) -> None:
    """End a worker and all that it started; while it leads no group of its own yet, itself alone."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _work(pipe: Connection, tasks: Mapping[str, Task], functions: RewardFunctions, seconds: float | None) -> NoReturn:
    """Score what comes through the pipe until it is closed, and never return into the fork server's own code.

    The first word back is None, or why this cannot begin.
    """
    try:
        os.setsid()  # whatever an answer starts ends with this group
        # The kernel's alarm with its default action needs no help of an interpreter that is busy with a long sum.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        pipe.send(_started(tasks))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while True:
            _answer(pipe, tasks, functions, seconds)
    finally:
        os._exit(0)


def _started(tasks: Mapping[str, Task]) -> str | None:
    try:
        for task in tasks.values():
            task.start()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


def _answer(pipe: Connection, tasks: Mapping[str, Task], functions: RewardFunctions, seconds: float | None) -> None:
    job: Job = pipe.recv()
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
    """The task's verdict; what its verifier raises, or returns instead, is an error of it, never a wrong answer."""
    try:
        return _checked(task.verify(problem, completion))
    except Exception as problem_of_ours:
        return failed(f"{type(problem_of_ours).__name__}: {problem_of_ours}"[:300])


def _checked(found: object) -> Verdict:
    """What a verifier returned, if it is a verdict on one answer."""
    if not isinstance(found, Verdict):
        raise TypeError(f"the verifier returned {found!r}, which is no Verdict")
    if found.score is not None and not 0 <= found.score <= 1:
        raise ValueError(f"the verifier gave a score of {found.score}, which is not from 0 to 1")
    if not all(map(math.isfinite, found.parts.values())):
        raise ValueError(f"the verifier gave parts that are not finite: {found.parts}")
    return found


def _make(recipes: Sequence[Recipe]) -> dict[str, Task]:
    from operant.envs.text.tasks import make_task

    tasks = [make_task(name, arguments, label) for name, arguments, label in recipes]
    for task in tasks:
        task.prepare()
    return {task.name: task for task in tasks}
