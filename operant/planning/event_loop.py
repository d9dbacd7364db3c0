"""A discrete-event loop of generator functions, whose computing parts may have to share cores.

A task is a generator that yields what it waits for: `Work`, a `Signal`, or another `Task` that has to finish first.
Where more cores are wanted than there are, all who compute slow down alike. So their work is kept by a second clock
that counts the core time each of them has had: `_core_time` runs as fast as the clock, or slower while cores are short.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field


class Interrupted(Exception):
    """Raised in a task whose work was cut off, as by the loss of a machine."""


@dataclass(frozen=True)
class Work:
    """So many seconds of an activity, by `width` devices of a part at once; on cores, unless it is a wait."""

    seconds: float
    part: str
    activity: str
    width: int = 1
    on_cores: bool = True


@dataclass(eq=False)
class Signal:
    """Something that tasks wait for."""

    waiting: deque[Task] = field(default_factory=deque)


Steps = Generator["Work | Signal | Task", None, None]


@dataclass(eq=False)
class Task:
    """A generator that the loop advances; `work` is what it does now, which the entry `entry` of a heap ends."""

    steps: Steps
    finished: bool = False
    done: Signal = field(default_factory=Signal)
    work: Work | None = None
    entry: int = -1


class EventLoop:
    """Advances tasks in the order of time (final).

    Cores are shared with `background` other threads, which always want one each and get as much as a task does.
    """

    def __init__(self, cores: float = math.inf, background: float = 0.0) -> None:
        self.cores = cores
        self.background = background
        self.now = 0.0
        self._busy: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._core_time = 0.0
        self._wanted_cores = 0
        self._active: dict[tuple[str, str], tuple[int, float]] = {}
        self._timers: list[tuple[float, int, Task]] = []
        self._computing: list[tuple[float, int, Task]] = []
        self._ready: deque[Task] = deque()
        self._entries = 0

    @property
    def busy(self) -> dict[tuple[str, str], float]:
        """By part and activity, how long devices were at it until now."""
        return {key: self._busy[key] + width * (self.now - since) for key, (width, since) in self._active.items()}

    def start(self, steps: Steps) -> Task:
        """Begin a task; its first step is taken in its turn."""
        task = Task(steps)
        self._ready.append(task)
        return task

    def notify(self, signal: Signal, count: int | None = None) -> None:
        """Let those who wait for a signal go on, or the first `count` of them."""
        for _ in range(len(signal.waiting) if count is None else min(count, len(signal.waiting))):
            self._ready.append(signal.waiting.popleft())

    def interrupt(self, task: Task) -> None:
        """Cut off the work of a task, which gets `Interrupted`."""
        if task.work is not None:
            self._end_work(task)
            self._resume(task, Interrupted())

    def run(self, done: Callable[[], bool]) -> None:
        """Advance until `done`, or until nothing is left to happen."""
        while not done():
            while self._ready:
                self._resume(self._ready.popleft())
            if done() or not self._advance():
                return

    def _advance(self) -> bool:
        """Go to the next moment at which some work ends; False if there is none."""
        for heap in (self._timers, self._computing):
            while heap and heap[0][2].entry != heap[0][1]:
                heapq.heappop(heap)
        speed = min(1.0, self.cores / max(self._wanted_cores + self.background, 1e-9))
        timer = self._timers[0][0] if self._timers else math.inf
        computed = self.now + (self._computing[0][0] - self._core_time) / speed if self._computing else math.inf
        if timer == computed == math.inf:
            return False
        passed = max(0.0, min(timer, computed) - self.now)
        self._core_time += passed * speed
        self.now += passed
        _, _, task = heapq.heappop(self._timers if timer <= computed else self._computing)
        self._end_work(task)
        self._ready.append(task)
        return True

    def _resume(self, task: Task, error: Exception | None = None) -> None:
        try:
            wanted = next(task.steps) if error is None else task.steps.throw(error)
        except StopIteration:
            task.finished = True
            self.notify(task.done)
            return
        if isinstance(wanted, Work):
            self._begin_work(task, wanted)
        elif isinstance(wanted, Signal):
            wanted.waiting.append(task)
        elif wanted.finished:
            self._ready.append(task)
        else:
            wanted.done.waiting.append(task)

    def _begin_work(self, task: Task, work: Work) -> None:
        self._entries += 1
        task.work, task.entry = work, self._entries
        self._count(work, work.width)
        if work.on_cores:
            self._wanted_cores += work.width
            heapq.heappush(self._computing, (self._core_time + work.seconds, task.entry, task))
        else:
            heapq.heappush(self._timers, (self.now + work.seconds, task.entry, task))

    def _end_work(self, task: Task) -> None:
        assert task.work is not None
        self._count(task.work, -task.work.width)
        self._wanted_cores -= task.work.width if task.work.on_cores else 0
        task.work, task.entry = None, -1

    def _count(self, work: Work, change: int) -> None:
        """So many devices more are at an activity from now on."""
        key = work.part, work.activity
        width, since = self._active.get(key, (0, self.now))
        self._busy[key] += width * (self.now - since)
        self._active[key] = width + change, self.now
