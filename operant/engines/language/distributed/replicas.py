"""Generators and verifiers elsewhere, as the trainer sees them: like those that are here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from operant.engines.language.distributed.ranks import Ranks, on_all_ranks
from operant.engines.language.distributed.weight_sync import SerializedWeights, serialize, trained_weights
from operant.engines.language.generation.generator import Completion, Generator, Probe, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.rewards import RewardRequest, Value
from operant.envs.text.task import Problem, Verdict, failed

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.distributed.actor_handle import ActorHandle
    from operant.engines.language.policy.model import Policy

PARTS_PER_VERIFIER = 4
"""A verifier gets its share in so many parts, so that a slow one holds up little, and a death costs little."""


class WeightStore:
    """Puts weights into the object store, once for all who ask for the same ones (final). Any thread may ask."""

    def __init__(self, put: Callable[[SerializedWeights], Any]) -> None:
        self._put = put
        self._lock = threading.Lock()
        self._weights: Mapping[str, Tensor] | None = None
        self._reference: Any = None

    def reference(self, weights: Mapping[str, Tensor], version: int) -> Any:
        """A reference to the weights, which must not change any more."""
        with self._lock:
            if self._weights is not weights:
                self._reference = self._put(serialize(weights, version))
                self._weights = weights
            return self._reference


class ActorGenerator:
    """A generator in an actor (final); `redone` are the numbers of the last call's prompts that were written twice."""

    def __init__(self, handle: ActorHandle, weight_store: WeightStore) -> None:
        self.handle = handle
        self.name = handle.name
        self.weight_store = weight_store
        self.redone: list[int] = []
        self._reference: tuple[Any, int] | None = None
        handle.prepare = self._load_newest

    @property
    def beat(self) -> Callable[[], object]:
        """Called whenever the actor shows that it lives; what it raises ends the call."""
        return self.handle.beat

    @beat.setter
    def beat(self, beat: Callable[[], object]) -> None:
        self.handle.beat = beat

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        self.redone = []
        assert self._reference is not None, "weights come before prompts"
        lost = lambda: self.redone.extend(range(len(prompts)))  # noqa: E731
        return self.handle.call("generate", list(prompts), sampling, self._reference[1], lost=lost)

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Send weights, which must not change any more; a successor of the actor gets the same."""
        self._reference = self.weight_store.reference(weights, version), version
        self.handle.call("load", self._reference[0])

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What the actor holds and writes."""
        found: list[Probe] = self.handle.call("probe", list(prompts), sampling)
        return [replace(each, name=self.name) for each in found]

    def close(self) -> None:
        """End the actor."""
        self.handle.close()

    def _load_newest(self, actor: Any) -> None:
        """The newest weights for a new actor."""
        if self._reference is not None:
            self.handle.wait(actor, actor.load.remote(self._reference[0]))


class Replicas:
    """Several generators that share the prompts of every call (final); weights that are not given are the policy's.

    Each has a fixed share, so that which replica writes what does not depend on how quick they are.
    """

    def __init__(self, generators: Sequence[ActorGenerator], policy: Policy) -> None:
        self.generators = list(generators)
        self.policy = policy
        self.redone: list[int] = []
        self._threads = ThreadPoolExecutor(len(self.generators), thread_name_prefix="replica")
        self.beat: Callable[[], object] = lambda: None
        for generator in self.generators:
            generator.beat = lambda: self.beat()

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        size = -(-len(prompts) // len(self.generators)) or 1
        firsts = list(range(0, len(prompts), size))
        generators = self.generators[: len(firsts)]
        parts = self._threads.map(
            lambda generator, first: generator.generate(prompts[first : first + size], sampling), generators, firsts
        )
        written = [row for part in parts for row in part]
        self.redone = [
            first + index for generator, first in zip(generators, firsts, strict=True) for index in generator.redone
        ]
        return written

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Send weights to all."""
        sent = weights or trained_weights(self.policy)
        for done in [self._threads.submit(generator.load, sent, version) for generator in self.generators]:
            done.result()

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What each replica holds and writes."""
        asked = self._threads.map(lambda generator: generator.probe(prompts, sampling), self.generators)
        return [each for found in asked for each in found]

    def close(self) -> None:
        """End the actors."""
        for generator in self.generators:
            generator.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class ActorVerifiers:
    """Verifiers in actors (final). Any thread may ask."""

    def __init__(self, handles: Sequence[ActorHandle], telemetry: Telemetry) -> None:
        self.handles = list(handles)
        self.telemetry = telemetry
        self._free: SimpleQueue[ActorHandle] = SimpleQueue()
        for handle in handles:
            self._free.put(handle)
        self._threads = ThreadPoolExecutor(len(self.handles), thread_name_prefix="verifier")

    def verify_all(
        self,
        answers: Sequence[tuple[Problem, str]],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[Verdict]:
        """The verdicts on answers, in their order; those that have not come `within` so many seconds are errors."""
        late = failed(f"no verdict within {within or 0:g} s", "late")
        ids = [problem.id for problem, _ in answers]
        return [found or late for found in self._shared("verify", answers, ids, within, beat)]

    def reward_all(
        self,
        requests: Sequence[RewardRequest],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[list[Value]]:
        """The values of reward functions, or why there are none, in the order of the requests and completions."""
        found = self._shared("reward", requests, [request.problem for request in requests], within, beat)
        late = f"no value within {within or 0:g} s"
        return [each or [late] * len(request.inputs) for each, request in zip(found, requests, strict=True)]

    def close(self) -> None:
        """End the actors; what still waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for handle in self.handles:
            handle.close()

    def _shared(
        self, method: str, jobs: Sequence[Any], ids: Sequence[str], within: float | None, beat: Callable[[], object]
    ) -> list[Any]:
        """What the actors reply to each job, which is about a problem of that id; None where that comes too late."""
        size = -(-len(jobs) // (PARTS_PER_VERIFIER * len(self.handles))) or 1
        starts = range(0, len(jobs), size)
        end = None if within is None else time.monotonic() + within
        waiting = [
            self._threads.submit(self._ask, method, jobs[at : at + size], ids[at : at + size], beat) for at in starts
        ]
        replies = zip(starts, waiting, strict=True)
        return [each for at, future in replies for each in _await(future, len(jobs[at : at + size]), end)]

    def _ask(self, method: str, jobs: Sequence[Any], ids: Sequence[str], beat: Callable[[], object]) -> list[Any]:
        handle = self._free.get()
        try:
            handle.beat = beat
            lost = lambda: self.telemetry.accounting.redo(ids, by=handle.name)  # noqa: E731
            return handle.call(method, list(jobs), lost=lost)
        finally:
            beat()
            self._free.put(handle)


def _await(future: Future[list[Any]], count: int, end: float | None) -> list[Any]:
    try:
        return future.result(None if end is None else max(0.0, end - time.monotonic()))
    except TimeoutError:
        future.cancel()
        return [None] * count


class SharedGenerator:
    """Writes with the generators of all processes (final).

    What is drawn depends on the prompt and the seed alone, so the completions are those that one process would write.
    """

    def __init__(self, own: Generator, ranks: Ranks) -> None:
        self.own = own
        self.ranks = ranks

    @on_all_ranks
    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts; only the leader has them all."""
        rank, size = self.ranks.rank, self.ranks.size
        parts = self.ranks.collect(self.own.generate(prompts[rank::size], sampling))
        return [parts[index % size][index // size] for index in range(len(prompts))] if rank == 0 else []

    @on_all_ranks
    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Take over weights by name; what is generated from now on has this version."""
        self.own.load(weights, version)

    @on_all_ranks
    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What each process holds and writes; only the leader has them all."""
        parts = self.ranks.collect(self.own.probe(prompts, sampling))
        return [replace(each, name=f"rank {rank}") for rank, part in enumerate(parts) for each in part]

    def close(self) -> None:
        """Let go of this process's memory."""
        self.own.close()


def shared_generator(generator: Generator, ranks: Ranks) -> Generator:
    """The generator of all processes where there are several; one that is no part of them stays as it is."""
    return generator if ranks.alone or not isinstance(generator, TorchGenerator) else SharedGenerator(generator, ranks)
