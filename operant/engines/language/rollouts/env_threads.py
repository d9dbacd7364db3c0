"""Threads for worlds: each rollout lives in one thread from its beginning to its end, as a sandbox demands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from operant.envs.text.dialogue import Dialogue, DialogueTask, Message, Response
from operant.envs.text.task import Problem, Verdict, failed
from operant.errors import OperantError, UsageError

LONGEST_NOTE = 600  # characters


@dataclass
class Seat:
    """A thread and the dialogue that it holds, if any."""

    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="world"))
    dialogue: Dialogue | None = None

    def begin(
        self, task: DialogueTask, problem: Problem, seed: int, snapshot: bytes | None = None
    ) -> Future[tuple[Message, ...]]:
        """Open a world, fresh or as a snapshot holds it; the future has its first words."""

        def opened() -> tuple[Message, ...]:
            if snapshot is not None:
                self.dialogue = task.resume(problem, seed, snapshot)
                return ()
            self.dialogue = task.begin(problem, seed)
            return self.dialogue.opening()

        return self.thread.submit(opened)

    def hear(self, text: str, cut: bool) -> Future[Response]:
        """Let the world hear what the policy said."""
        return self.thread.submit(self._held.hear, text, cut)

    def keep(self) -> Future[bytes]:
        """A snapshot of the world."""
        return self.thread.submit(self._held.snapshot)

    def judge(self) -> Future[Verdict]:
        """The verdict on the rollout, whose world is then closed."""

        def judged() -> Verdict:
            try:
                return self._held.verdict()
            finally:
                self._let_go()

        return self.thread.submit(judged)

    def give_up(self) -> Future[None]:
        """Close the world without a verdict."""
        return self.thread.submit(self._let_go)

    @property
    def _held(self) -> Dialogue:
        assert self.dialogue is not None, "a seat speaks only while it holds a dialogue"
        return self.dialogue

    def _let_go(self) -> None:
        dialogue, self.dialogue = self.dialogue, None
        if dialogue is not None:
            dialogue.close()


class Seats:
    """So many seats, free or taken; leaving closes every world (final)."""

    def __init__(self, count: int) -> None:
        self._all = [Seat() for _ in range(count)]
        self._free = list(reversed(self._all))

    @property
    def free(self) -> int:
        """How many seats are free."""
        return len(self._free)

    def take(self) -> Seat:
        """A free seat."""
        return self._free.pop()

    def leave(self, seat: Seat) -> None:
        """Give a seat back."""
        self._free.append(seat)

    def __enter__(self) -> Seats:
        return self

    def __exit__(self, *_: object) -> None:
        closing = [seat.give_up() for seat in self._all]
        for each in closing:
            with suppress(Exception):
                each.result()
        for seat in self._all:
            seat.thread.shutdown()


def outcomes(futures: Sequence[Future[Any]], beat: Callable[[], object]) -> list[Any]:
    """What each call gave, or the failed verdict that says why it gave nothing; a user's mistake ends them all."""
    found = []
    for future in futures:
        try:
            found.append(future.result())
        except UsageError:
            raise
        except OperantError as problem:
            found.append(failed(problem.cause))
        except Exception as problem:  # a world of others may fail in any way, and its rollout is lost, not the run
            found.append(failed(f"{type(problem).__name__}: {problem}"[:LONGEST_NOTE]))
        beat()
    return found
