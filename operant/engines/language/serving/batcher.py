"""The request batcher: many requests come, one thread has the model, and those that came together run together."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from operant.engines.language.generation.generator import Completion, Prompt, Sampling

if TYPE_CHECKING:
    from operant.engines.language.generation.torch_generator import TorchGenerator

GATHER_SECONDS = 0.004
"""So long the batcher waits for others after the first: requests that are sent together do not arrive together."""
CLOSE_SECONDS = 60.0


@dataclass(frozen=True)
class Piece:
    """All that is written so far of a choice, and the completion once it is done; choices count prompt by prompt."""

    choice: int
    tokens: Sequence[int]
    logprobs: Sequence[float]
    completion: Completion | None = None


@dataclass(eq=False)
class BatchRequest:
    """Prompts to be completed; with `seeded`, equal requests get equal completions, otherwise each gets its own.

    `on_piece` is called while completions are written, in the batcher's thread. A request whose `answer` is cancelled
    is dropped, also while it is being written.
    """

    prompts: Sequence[Prompt]
    sampling: Sampling
    seeded: bool
    on_piece: Callable[[Piece], None] | None = None
    answer: Future[list[list[Completion]]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.rows: list[list[Completion | None]] = [[None] * self.sampling.n for _ in self.prompts]
        self.lacking = len(self.prompts) * self.sampling.n

    def tell(self, prompt: int, index: int, *piece: Any) -> None:
        """Let the one who follows hear a piece."""
        if self.on_piece is not None:
            self.on_piece(Piece(prompt * self.sampling.n + index, *piece))

    def take(self, prompt: int, index: int, completion: Completion) -> None:
        """One completion has ended; with the last one the answer is there."""
        if self.answer.cancelled():
            return
        self.rows[prompt][index] = completion
        self.lacking -= 1
        self.tell(prompt, index, completion.tokens, completion.logprobs, completion)
        if not self.lacking:
            with suppress(InvalidStateError):  # cancelled just now
                self.answer.set_result([[each for each in row if each is not None] for row in self.rows])


@dataclass
class Batch:
    """One call of the generator. The completions of its prompts are those of a request's prompt, from an index on."""

    sampling: Sampling
    prompts: list[Prompt] = field(default_factory=list)
    owners: list[tuple[BatchRequest, int, int]] = field(default_factory=list)

    @property
    def follows(self) -> bool:
        """Whether anybody wants to hear the writing."""
        return any(request.on_piece is not None for request, _, _ in self.owners)

    def wants(self, prompt: int) -> bool:
        """Whether the completions of a prompt are still waited for."""
        return not self.owners[prompt][0].answer.cancelled()

    def progress(self, prompt: int, index: int, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
        """Pass on what is written so far."""
        request, number, first = self.owners[prompt]
        request.tell(number, first + index, tokens, logprobs)

    def done(self, prompt: int, index: int, completion: Completion) -> None:
        """Hand a completion to its owner."""
        request, number, first = self.owners[prompt]
        request.take(number, first + index, completion)


def plan(requests: Sequence[BatchRequest]) -> list[Batch]:
    """As few batches as give every request what it asked for.

    A completion without a seed is a prompt of its own with a salt drawn by chance: all of one manner share a batch,
    the model still reads equal prompts once, and no two completions are alike but by chance.
    """
    batches: dict[Sampling, Batch] = {}
    for request in requests:
        sampling = request.sampling
        fixed = request.seeded or sampling.temperature == 0
        key = sampling if fixed else replace(sampling, n=1, seed=0)
        batch = batches.setdefault(key, Batch(key))
        for number, prompt in enumerate(request.prompts):
            for first in range(1 if fixed else sampling.n):
                batch.prompts.append(prompt if fixed else replace(prompt, salt=secrets.randbits(62)))
                batch.owners.append((request, number, first))
    return list(batches.values())


@dataclass
class _Work:
    """Anything else that needs the model to itself."""

    do: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        if self.answer.set_running_or_notify_cancel():
            try:
                self.answer.set_result(self.do())
            except Exception as fault:
                self.answer.set_exception(fault)


class RequestBatcher:
    """Answers requests with a generator, one batch after another, in a thread of its own (final)."""

    def __init__(self, generator: TorchGenerator) -> None:
        self.generator = generator
        self.batches = 0
        self._inbox: SimpleQueue[BatchRequest | _Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="batcher", daemon=True)
        self._thread.start()

    def submit(self, request: BatchRequest) -> Future[list[list[Completion]]]:
        """Completions of prompts that are known to have room in the model's context."""
        self._inbox.put(request)
        return request.answer

    def do(self, work: Callable[[], Any]) -> Future[Any]:
        """Whatever `work` returns, done while the generator rests."""
        item = _Work(work)
        self._inbox.put(item)
        return item.answer

    @property
    def waiting(self) -> int:
        """How many requests are not begun."""
        return self._inbox.qsize()

    def close(self) -> None:
        """Answer nobody any more; what is being written is dropped.

        The thread is waited for: one that still computes when the interpreter ends would bring the process down.
        """
        self.generator.halt()
        self._inbox.put(None)
        self._thread.join(timeout=CLOSE_SECONDS)

    def _serve(self) -> None:
        while (first := self._inbox.get()) is not None:
            time.sleep(GATHER_SECONDS)
            came = [first, *self._others()]
            for work in (each for each in came if isinstance(each, _Work)):
                work.run()
            requests = [each for each in came if isinstance(each, BatchRequest) and not each.answer.cancelled()]
            for batch in plan(requests):
                self._run(batch)
            if came[-1] is None:
                return

    def _others(self) -> list[BatchRequest | _Work | None]:
        found: list[BatchRequest | _Work | None] = []
        with suppress(Empty):
            while not found or found[-1] is not None:
                found.append(self._inbox.get_nowait())
        return found

    def _run(self, batch: Batch) -> None:
        self.batches += 1
        try:
            self.generator.generate(batch.prompts, batch.sampling, batch)
        except Exception as fault:
            for request, _, _ in batch.owners:
                with suppress(InvalidStateError):  # one that is answered, or cancelled
                    request.answer.set_exception(fault)
