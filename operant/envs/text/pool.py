"""Verdicts from worker processes with a hard time limit.

Each worker has one answer in hand at a time, so that its end can cost no other. One that runs past the limit is
killed and the verdict is `timeout`; one that dies has its answer verified once more by a fresh worker, and only then is
that a `crash`. Both are invalid, and no number. Quick tasks of Operant are verified where they are asked for.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, TypeVar

from operant.envs.text.fork_server import START_SECONDS, ForkServer
from operant.envs.text.rewards import SECONDS as REWARD_SECONDS
from operant.envs.text.rewards import RewardRequest, Value
from operant.envs.text.task import Problem, Task, Verdict, failed
from operant.envs.text.verify_worker import Job, verify
from operant.errors import RunError, UsageError

TRIES = 2
T = TypeVar("T")


@dataclass(frozen=True)
class Heartbeat:
    """How the pool stands: what waits, what is in hand and for how long, and how many workers were replaced."""

    waiting: int
    verifying: int
    longest_seconds: float
    replaced: int
    pids: tuple[int, ...]


class Verifiers:
    """A pool of `workers` processes that verify answers to the problems of `tasks` (final).

    `seconds` limits one verdict, instead of each task's own limit. `rewards` are the settings of reward functions, in
    plain data, which the same processes compute. `counts` holds how many verdicts there were of each
    outcome. Use it in a `with` statement, or close it.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        workers: int = 2,
        seconds: float | None = None,
        rewards: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if workers < 1:
            raise UsageError(f"verifiers need at least one worker, not {workers}")
        self.tasks = {task.name: task for task in tasks}
        self.seconds = seconds
        self.counts: Counter[str] = Counter()
        slow = [task.recipe for task in tasks if not _is_quick(task)]
        self._lock = threading.Lock()
        self._waiting = 0
        self._server = ForkServer(slow, seconds, rewards)
        self._workers = [_Worker(self._server) for _ in range(workers if slow or rewards else 0)]
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="verifier")

    def submit(self, problem: Problem, completion: str) -> Future[Verdict]:
        """The verdict on an answer, when it is there."""
        task = self.tasks[problem.task]
        if _is_quick(task):
            done: Future[Verdict] = Future()
            done.set_result(self._counted(verify(task, problem, completion)))
            return done
        return self._submit(self._verify, task, problem, completion)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict on one answer."""
        return self.submit(problem, completion).result()

    def verify_all(
        self,
        answers: Sequence[tuple[Problem, str]],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[Verdict]:
        """The verdicts on answers, in their order; those that have not come `within` so many seconds are errors.

        `beat` is called after each.
        """
        end = None if within is None else time.monotonic() + within
        waiting = [self.submit(problem, completion) for problem, completion in answers]
        verdicts = []
        for future in waiting:
            verdicts.append(_in_time(future, end, within))
            beat()
        return verdicts

    def reward_all(
        self,
        requests: Sequence[RewardRequest],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[list[Value]]:
        """The values of reward functions, or why there are none, in the order of the requests and completions."""
        end = None if within is None else time.monotonic() + within
        waiting = [self._submit(self._reward, request) for request in requests]
        found: list[list[Value]] = []
        for request, future in zip(requests, waiting, strict=True):
            found.append(_values(_in_time(future, end, within), request))
            beat()
        return found

    def heartbeat(self) -> Heartbeat:
        """How the pool stands now."""
        now = time.monotonic()
        since = [worker.since for worker in self._workers]
        busy = [now - start for start in since if start is not None]
        pids = tuple(pid for worker in self._workers if (pid := worker.pid) is not None)
        replaced = sum(worker.replaced for worker in self._workers)
        return Heartbeat(self._waiting, len(busy), max(busy, default=0.0), replaced, pids)

    def close(self) -> None:
        """End the workers; what still waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(wait=True)
        for worker in self._workers:
            worker.kill()
        self._server.close()

    def __enter__(self) -> Verifiers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        with self._lock:
            self._waiting += 1
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(self._uncount)
        return future

    def _verify(self, task: Task, problem: Problem, completion: str) -> Verdict:
        return self._counted(self._asked((problem, completion), self.seconds or task.SECONDS))

    def _reward(self, request: RewardRequest) -> list[Value] | Verdict:
        return self._asked(request, self.seconds or REWARD_SECONDS)

    def _asked(self, job: Job, seconds: float) -> Any:
        """What a free worker replies."""
        worker = self._free.get()
        with self._lock:
            self._waiting -= 1
        try:
            return worker.ask(job, seconds)
        finally:
            self._free.put(worker)

    def _uncount(self, future: Future[Any]) -> None:
        """One that was given up before its turn waits no more."""
        if future.cancelled():
            with self._lock:
                self._waiting -= 1

    def _counted(self, verdict: Verdict) -> Verdict:
        with self._lock:
            self.counts[verdict.outcome] += 1
        return verdict


class _Worker:
    """One place in the pool: a process, or its successor (final). One thread at a time uses it."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._pipe: Connection | None = None
        self._closed = False
        self.pid: int | None = None
        self.since: float | None = None
        self.replaced = 0

    def ask(self, job: Job, seconds: float) -> Any:
        """The reply of the process here, or the verdict that says what became of it."""
        for _ in range(TRIES):
            if self._closed:
                return failed("the verifiers were closed")
            self.since = time.monotonic()
            try:
                pipe = self._pipe or self._start()
                pipe.send(job)
                if pipe.poll(seconds):
                    return pipe.recv()
                self.kill()
                return failed(f"no verdict within {seconds:g} s", "timeout")
            except (EOFError, OSError):
                self.kill()
            finally:
                self.since = None
        return failed(f"the process that verified this died {TRIES} times", "crash")

    def stop(self) -> None:
        """Verify no more; whoever waits for the process here sees it end. Any thread may call this."""
        self._closed = True
        if (pid := self.pid) is not None:
            self._server.end(pid)

    def kill(self) -> None:
        """End the process, or what there is of it, and let go of it."""
        self.replaced += not self._closed
        (pid, pipe), self.pid, self._pipe = (self.pid, self._pipe), None, None
        if pid is not None:
            self._server.end(pid)
        if pipe is not None:
            pipe.close()

    def _start(self) -> Connection:
        self.pid, self._pipe = self._server.fork()
        if not self._pipe.poll(START_SECONDS):
            self.kill()
            raise RunError(f"a verifier did not start within {START_SECONDS:g} s")
        if (refusal := self._pipe.recv()) is not None:
            self.kill()
            raise RunError(f"a verifier cannot begin: {refusal}")
        return self._pipe


def _values(reply: list[Value] | Verdict, request: RewardRequest) -> list[Value]:
    return [reply.note] * len(request.inputs) if isinstance(reply, Verdict) else reply


def _in_time(future: Future[T], end: float | None, within: float | None) -> T | Verdict:
    """The verdict, or that there was none before `end`."""
    try:
        return future.result(None if end is None else max(0.0, end - time.monotonic()))
    except TimeoutError:
        future.cancel()
        return failed(f"no verdict within {within:g} s", "late")


def _is_quick(task: Task) -> bool:
    """Whether a verdict is given in this process: only where the code is Operant's, which is held to be quick."""
    return task.QUICK and type(task).__module__.partition(".")[0] == "operant"
