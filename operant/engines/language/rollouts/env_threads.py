"""Threads for environments: each rollout lives in one thread from its beginning to its end, as a sandbox demands."""

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


@dataclass(frozen=True)
class Kept:
    """How to bring an environment to where it was after its last finished turn.

    By its checkpoint, `env`, or by hearing again what was `said`, and whether that was cut; it must then answer with
    the messages that were `heard`.
    """

    env: bytes | None
    said: tuple[tuple[str, bool], ...]
    heard: tuple[tuple[Message, ...], ...]


@dataclass
class EnvThread:
    """A thread and the dialogue that it holds, if any."""

    executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="env"))
    dialogue: Dialogue | None = None

    def begin(
        self,
        task: DialogueTask,
        problem: Problem,
        seed: int,
        snapshot: bytes | None = None,
        kept: Kept | None = None,
    ) -> Future[tuple[Message, ...] | None]:
        """Open an environment, fresh or from a snapshot; the future has its first messages.

        It has None where the environment is now where it was `kept`.
        """

        def opened() -> tuple[Message, ...] | None:
            if kept is not None and self._restored(task, problem, seed, kept):
                return None
            if snapshot is not None:
                self.dialogue = task.resume(problem, seed, snapshot)
                return ()
            self.dialogue = task.begin(problem, seed)
            return self.dialogue.opening()

        return self.executor.submit(opened)

    def step(self, text: str, cut: bool) -> Future[Response]:
        """Step the environment with what the policy wrote."""
        return self.executor.submit(self._open_dialogue.hear, text, cut)

    def snapshot(self) -> Future[bytes]:
        """A snapshot of the environment."""
        return self.executor.submit(self._open_dialogue.snapshot)

    def checkpoint(self) -> Future[bytes | None]:
        """A checkpoint of the environment, where it keeps any."""
        return self.executor.submit(self._open_dialogue.checkpoint)

    def score(self) -> Future[Verdict]:
        """The verdict on the rollout, whose environment is then closed."""

        def scored() -> Verdict:
            try:
                return self._open_dialogue.verdict()
            finally:
                self._close()

        return self.executor.submit(scored)

    def close(self) -> Future[None]:
        """Close the environment without a verdict."""
        return self.executor.submit(self._close)

    def _restored(self, task: DialogueTask, problem: Problem, seed: int, kept: Kept) -> bool:
        """Whether the environment could be brought to where it was; if not, it is closed."""
        try:
            if self._brought_back(task, problem, seed, kept):
                return True
        except UsageError:
            raise
        except Exception:  # environments of others may fail in any way; one that begins anew loses time only
            pass
        self._close()
        return False

    def _brought_back(self, task: DialogueTask, problem: Problem, seed: int, kept: Kept) -> bool:
        """By its checkpoint, or by the same words, if it has the same answers to them."""
        if kept.env is not None:
            self.dialogue = task.restore(problem, seed, kept.env)
            return True
        self.dialogue = task.begin(problem, seed)
        answers = (self.dialogue.opening(), *(self.dialogue.hear(text, cut).messages for text, cut in kept.said))
        return answers == kept.heard

    @property
    def _open_dialogue(self) -> Dialogue:
        assert self.dialogue is not None, "a thread steps only while it holds a dialogue"
        return self.dialogue

    def _close(self) -> None:
        dialogue, self.dialogue = self.dialogue, None
        if dialogue is not None:
            dialogue.close()


class EnvThreadPool:
    """So many threads, free or taken; the end of the block closes every environment (final)."""

    def __init__(self, count: int) -> None:
        self._all = [EnvThread() for _ in range(count)]
        self._free = list(reversed(self._all))

    @property
    def free(self) -> int:
        """How many threads are free."""
        return len(self._free)

    def acquire(self) -> EnvThread:
        """A free thread."""
        return self._free.pop()

    def release(self, thread: EnvThread) -> None:
        """Give a thread back."""
        self._free.append(thread)

    def __enter__(self) -> EnvThreadPool:
        return self

    def __exit__(self, *_: object) -> None:
        closing = [thread.close() for thread in self._all]
        for each in closing:
            with suppress(Exception):
                each.result()
        for thread in self._all:
            thread.executor.shutdown()


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
        except (
            Exception
        ) as problem:  # an environment of others may fail in any way, and its rollout is lost, not the run
            found.append(failed(f"{type(problem).__name__}: {problem}"[:LONGEST_NOTE]))
        beat()
    return found
