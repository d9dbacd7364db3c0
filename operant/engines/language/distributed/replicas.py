"""Generators and verifiers elsewhere, as the trainer sees them: like those that are here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from operant.engines.language.distributed.weight_sync import Parcel, pack, trained_weights
from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.task import Problem, Verdict, failed

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.distributed.ray_cluster import Post
    from operant.engines.language.policy.model import Policy

PARTS_PER_JUDGE = 4
"""A judge gets its share in so many parts, so that a slow one does not hold up the rest, and a death costs little."""


class Courier:
    """Puts weights into the object store, once for all who ask for the same ones (final). Any thread may ask."""

    def __init__(self, put: Callable[[Parcel], Any]) -> None:
        self._put = put
        self._lock = threading.Lock()
        self._weights: Mapping[str, Tensor] | None = None
        self._parcel: Any = None

    def parcel(self, weights: Mapping[str, Tensor], version: int) -> Any:
        """A reference to the weights, which must not change any more."""
        with self._lock:
            if self._weights is not weights:
                self._parcel = self._put(pack(weights, version))
                self._weights = weights
            return self._parcel


class ActorGenerator:
    """A generator at a post (final); `redone` are the numbers of the last call's prompts that were written twice."""

    def __init__(self, post: Post, courier: Courier) -> None:
        self.post = post
        self.name = post.name
        self.courier = courier
        self.redone: list[int] = []
        self._parcel: tuple[Any, int] | None = None
        post.prepare = self._bring

    @property
    def beat(self) -> Callable[[], object]:
        """Called whenever the actor shows that it lives; what it raises ends the call."""
        return self.post.beat

    @beat.setter
    def beat(self, beat: Callable[[], object]) -> None:
        self.post.beat = beat

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        self.redone = []
        assert self._parcel is not None, "weights come before prompts"
        lost = lambda: self.redone.extend(range(len(prompts)))  # noqa: E731
        return self.post.call("generate", list(prompts), sampling, self._parcel[1], lost=lost)

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Send weights, which must not change any more; a successor of the actor gets the same."""
        self._parcel = self.courier.parcel(weights, version), version
        self.post.call("load", self._parcel[0])

    def close(self) -> None:
        """End the actor."""
        self.post.close()

    def _bring(self, actor: Any) -> None:
        """The newest weights for a new actor."""
        if self._parcel is not None:
            self.post.wait(actor, actor.load.remote(self._parcel[0]))


class Replicas:
    """Several generators that share the prompts of every call (final); weights that are not given are the policy's.

    Each has a fixed share, so that which replica writes what does not depend on how quick they are.
    """

    def __init__(self, writers: Sequence[ActorGenerator], policy: Policy) -> None:
        self.writers = list(writers)
        self.policy = policy
        self.redone: list[int] = []
        self._threads = ThreadPoolExecutor(len(self.writers), thread_name_prefix="replica")
        self.beat: Callable[[], object] = lambda: None
        for writer in self.writers:
            writer.beat = lambda: self.beat()

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        size = -(-len(prompts) // len(self.writers)) or 1
        firsts = list(range(0, len(prompts), size))
        writers = self.writers[: len(firsts)]
        parts = self._threads.map(
            lambda writer, first: writer.generate(prompts[first : first + size], sampling), writers, firsts
        )
        written = [row for part in parts for row in part]
        self.redone = [first + index for writer, first in zip(writers, firsts, strict=True) for index in writer.redone]
        return written

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Send weights to all."""
        sent = weights or trained_weights(self.policy)
        for done in [self._threads.submit(writer.load, sent, version) for writer in self.writers]:
            done.result()

    def close(self) -> None:
        """End the actors."""
        for writer in self.writers:
            writer.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class ActorJudges:
    """Verifiers at posts (final). Any thread may ask."""

    def __init__(self, posts: Sequence[Post], witness: Witness) -> None:
        self.posts = list(posts)
        self.witness = witness
        self._free: SimpleQueue[Post] = SimpleQueue()
        for post in posts:
            self._free.put(post)
        self._threads = ThreadPoolExecutor(len(self.posts), thread_name_prefix="judge")

    def verify_all(
        self,
        answers: Sequence[tuple[Problem, str]],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[Verdict]:
        """The verdicts on answers, in their order; those that have not come `within` so many seconds are errors."""
        size = -(-len(answers) // (PARTS_PER_JUDGE * len(self.posts))) or 1
        parts = [answers[first : first + size] for first in range(0, len(answers), size)]
        end = None if within is None else time.monotonic() + within
        waiting = [self._threads.submit(self._judge, part, beat) for part in parts]
        late = failed(f"no verdict within {within or 0:g} s")
        return [
            verdict for part, future in zip(parts, waiting, strict=True) for verdict in _await(future, part, end, late)
        ]

    def close(self) -> None:
        """End the actors; what still waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for post in self.posts:
            post.close()

    def _judge(self, part: Sequence[tuple[Problem, str]], beat: Callable[[], object]) -> list[Verdict]:
        post = self._free.get()
        try:
            post.beat = beat
            lost = lambda: self.witness.ledger.redo((problem.id for problem, _ in part), by=post.name)  # noqa: E731
            return post.call("judge", list(part), lost=lost)
        finally:
            beat()
            self._free.put(post)


def _await(
    future: Future[list[Verdict]], part: Sequence[tuple[Problem, str]], end: float | None, late: Verdict
) -> list[Verdict]:
    try:
        return future.result(None if end is None else max(0.0, end - time.monotonic()))
    except TimeoutError:
        future.cancel()
        return [late] * len(part)
