"""A language run as a simulation: what the trainer, the generators and the verifiers do, and what they wait for.

It follows `operant.engines.language`: rounds by `distributed.replicas` where nothing is stale, and else the workers and
the bounded queue of `distributed.async_rollouts`. Each prompt has completions of the same lengths in every simulation
of one seed, so that two simulations differ by what they are asked to compare and by nothing else.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from operant.planning.event_loop import EventLoop, Interrupted, Signal, Steps, Task, Work
from operant.planning.workload import Machines, Split, Workload
from operant.run.rates import Rates, decoding_steps

PARTS_PER_VERIFIER = 4
"""As in `operant.engines.language.distributed.replicas`."""
COLLECTIVES = 3
"""Times that a pass of sharded weights moves them: gathered forwards and backwards, and the gradients scattered."""
PROMPTS = 2048
"""Prompts whose lengths are drawn; later ones have those of the first again."""
TRAINERS, GENERATORS, VERIFIERS = "trainers", "generators", "verifiers"


@dataclass(frozen=True)
class Group:
    """Completions of one prompt, by weights that had so many updates."""

    version: int
    tokens: int
    has_signal: bool


@dataclass
class Worker:
    """A generator: the weights that it has, and what it does."""

    node: int
    version: int = 0
    lost: bool = False
    task: Task | None = None


@dataclass
class Copies:
    """Where the weights of one version are: nodes that have them and those that are getting them, and free senders."""

    senders: int = 1
    there: set[int] = field(default_factory=lambda: {0})
    coming: set[int] = field(default_factory=set)
    moved: Signal = field(default_factory=Signal)


@dataclass
class Record:
    """What a simulation has seen, round by round."""

    ends: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    ages: list[list[int]] = field(default_factory=list)
    busy: list[dict[tuple[str, str], float]] = field(default_factory=list)
    stale: int = 0
    redone: int = 0


class TrainingSimulation:
    """One run of so many rounds (final): `run` it once. At `lost_at` seconds the machine `lost_node` is lost."""

    def __init__(
        self,
        workload: Workload,
        rates: Rates,
        machines: Machines,
        split: Split,
        seed: int = 0,
        lost_at: float | None = None,
        lost_node: int = 0,
    ) -> None:
        self.workload, self.rates, self.machines, self.split = workload, rates, machines, split
        self.loop = EventLoop(machines.cores, machines.background)
        self.record = Record()
        self.loss = None if lost_at is None else (lost_at, lost_node)
        count = split.trainers if split.colocated else split.generators
        self.workers = [Worker(split.node_of(index, machines.gpus)) for index in range(count)]
        self.in_turns = split.colocated or workload.staleness == 0
        self.version = 0
        self.position = 0
        self.room = workload.prompts * max(1, workload.staleness // workload.updates)
        self.share = -(-workload.prompts // count)
        self.held = 0
        self.ready: deque[Group] = deque()
        self.handed_in, self.room_made = Signal(), Signal()
        self.free_verifiers, self.verifier_freed = split.verifiers, Signal()
        self.copies: dict[int, Copies] = {}
        rng = np.random.default_rng(seed)
        drawn = rng.integers(len(rates.lengths), size=(PROMPTS, workload.group_size))
        self.lengths = np.asarray(rates.lengths)[drawn]
        self.signals = rng.random(PROMPTS) < rates.signal

    def run(self, rounds: int) -> Record:
        """Simulate so many rounds."""
        trainer = self.loop.start(self._rounds_in_turns(rounds) if self.in_turns else self._rounds_ahead(rounds))
        if not self.in_turns:
            for worker in self.workers:
                worker.task = self.loop.start(self._work_ahead(worker))
        if self.loss is not None:
            self.loop.start(self._lose(*self.loss))
        self.loop.run(lambda: trainer.finished)
        assert trainer.finished, "the simulation came to a stop before its last round"
        return self.record

    # Synchronous rounds: generate, verify, train, hand over the weights.

    def _rounds_in_turns(self, rounds: int) -> Steps:
        for _ in range(rounds):
            groups: list[Group] = []
            for _ in range(1 + self.workload.resample_rounds):
                lacking = self.workload.prompts - self._useful(groups)
                if lacking <= 0:
                    break
                yield from self._one_round(lacking, groups)
            yield from self._train(groups)
            yield from self._together([self._load(worker, self.version) for worker in self.workers])

    def _one_round(self, prompts: int, groups: list[Group]) -> Steps:
        places = self._take(prompts)
        size = -(-prompts // len(self.workers))
        parts = [places[at : at + size] for at in range(0, prompts, size)]
        pairs = zip(self.workers, parts, strict=False)
        yield from self._together([self._generate(worker, part, self.version) for worker, part in pairs])
        yield from self._verify(prompts * self.workload.group_size)
        groups += [self._group(place, self.version) for place in places]

    def _together(self, every: Sequence[Steps]) -> Steps:
        """Let the workers do something each, and wait for all."""
        for worker, steps in zip(self.workers, every, strict=False):
            worker.task = self.loop.start(steps)
        for worker in self.workers[: len(every)]:
            assert worker.task is not None
            yield worker.task

    # Asynchronous rollouts: workers with a bounded queue.

    def _rounds_ahead(self, rounds: int) -> Steps:
        for _ in range(rounds):
            groups: list[Group] = []
            while not self._enough(groups):
                while not self.ready:
                    yield self.handed_in
                group = self.ready.popleft()
                self.held -= 1
                self.loop.notify(self.room_made, 1)
                if group.version < self.version - self.workload.staleness:
                    self.record.stale += 1
                else:
                    groups.append(group)
            yield from self._train(groups)

    def _work_ahead(self, worker: Worker) -> Steps:
        while True:
            while self.held >= self.room:
                yield self.room_made
            places = self._take(min(self.share, self.room - self.held))
            self.held += len(places)
            version = self.version
            yield from self._generate(worker, places, version)
            yield from self._verify(len(places) * self.workload.group_size)
            self.ready.extend(self._group(place, version) for place in places)
            self.loop.notify(self.handed_in)

    def _useful(self, groups: Sequence[Group]) -> int:
        return sum(group.has_signal for group in groups) if self.workload.resample_rounds else len(groups)

    def _enough(self, groups: Sequence[Group]) -> bool:
        most = self.workload.prompts * (1 + self.workload.resample_rounds)
        return self._useful(groups) >= self.workload.prompts or len(groups) >= most

    # What each part does.

    def _take(self, prompts: int) -> range:
        self.position += prompts
        return range(self.position - prompts, self.position)

    def _group(self, place: int, version: int) -> Group:
        return Group(version, int(self.lengths[place % PROMPTS].sum()), bool(self.signals[place % PROMPTS]))

    def _generate(self, worker: Worker, places: Sequence[int], version: int) -> Steps:
        """Write by weights of a version; whoever takes the place of a worker that was lost does it all again."""
        seconds = self._decode_seconds([place % PROMPTS for place in places])
        while True:
            try:
                yield from self._load(worker, version)
                yield Work(seconds, self._part, "generate")
                return
            except Interrupted:
                self.record.redone += len(places)

    def _load(self, worker: Worker, version: int) -> Steps:
        """Let a worker have weights, and a process again where its machine was lost."""
        while worker.lost or worker.version != version:
            try:
                if worker.lost:
                    yield Work(self.machines.restart_seconds, self._part, "restart", on_cores=False)
                    worker.lost = False
                if self.split.colocated:
                    yield Work(self._all_gather_seconds(), self._part, "transfer", on_cores=False)
                else:
                    yield from self._receive(worker.node, version)
                yield Work(self.rates.load_seconds, self._part, "load")
                worker.version = version
            except Interrupted:
                continue

    @property
    def _part(self) -> str:
        return TRAINERS if self.split.colocated else GENERATORS

    def _receive(self, node: int, version: int) -> Steps:
        """Bring weights to a node, once for all on it; a node that has them sends them on, to one other at a time."""
        copies = self.copies.setdefault(version, Copies())
        while node in copies.coming or (node not in copies.there and not copies.senders):
            yield copies.moved
        if node in copies.there:
            yield Work(self.rates.weight_bytes / self.machines.gpu_bandwidth, self._part, "transfer", on_cores=False)
            return
        copies.senders -= 1
        copies.coming.add(node)
        try:
            yield Work(self.rates.weight_bytes / self.machines.bandwidth, self._part, "transfer", on_cores=False)
            copies.there.add(node)
            copies.senders += 1
        finally:
            copies.senders += 1
            copies.coming.discard(node)
            self.loop.notify(copies.moved)

    def _verify(self, answers: int) -> Steps:
        """Have answers verified by the pool, in parts as the engine cuts them, or larger ones of very many workers."""
        askers = 1 if self.in_turns else len(self.workers)
        most = max(PARTS_PER_VERIFIER, PARTS_PER_VERIFIER * self.split.verifiers // askers)
        size = -(-answers // most)
        sizes = [min(size, answers - at) for at in range(0, answers, size)]
        yield from [self.loop.start(self._verify_part(each)) for each in sizes]

    def _verify_part(self, answers: int) -> Steps:
        while not self.free_verifiers:
            yield self.verifier_freed
        self.free_verifiers -= 1
        yield Work(answers * self.rates.verify_seconds, VERIFIERS, "verify")
        self.free_verifiers += 1
        self.loop.notify(self.verifier_freed, 1)

    def _train(self, groups: Sequence[Group]) -> Steps:
        """Learn from a round, and publish the weights."""
        tokens = sum(group.tokens for group in groups)
        ages = [self.version - group.version for group in groups]
        yield Work(self.rates.round_seconds, TRAINERS, "record")
        compute, moving = self._train_seconds(tokens)
        yield Work(compute, TRAINERS, "train", width=self.split.trainers)
        yield Work(moving, TRAINERS, "wait for collectives", width=self.split.trainers, on_cores=False)
        yield Work(self.rates.publish_seconds, TRAINERS, "publish")
        self.copies.pop(self.version, None)
        self.version += self.workload.updates
        record = self.record
        record.ends.append(self.loop.now)
        record.samples.append(len(groups) * self.workload.group_size)
        record.tokens.append(tokens)
        record.ages.append(ages)
        record.busy.append(self.loop.busy)

    def _decode_seconds(self, prompts: Sequence[int]) -> float:
        lengths = self.lengths[list(prompts)].ravel()
        steps = decoding_steps(lengths, self.workload.slots)
        return steps * self.rates.step_seconds + int(lengths.sum()) * self.rates.token_seconds

    def _train_seconds(self, tokens: int) -> tuple[float, float]:
        """Seconds of a round's updates, and of their collectives, as far as these take longer than the passes."""
        trainers, updates = self.split.trainers, self.workload.updates
        passes = max(math.ceil(tokens / updates / self.workload.pass_tokens), trainers)
        turns = math.ceil(passes / trainers)
        compute = tokens * self.rates.train_token_seconds * turns / passes
        return compute, max(0.0, updates * turns * COLLECTIVES * self._all_gather_seconds() - compute)

    def _all_gather_seconds(self) -> float:
        trainers, machines = self.split.trainers, self.machines
        bandwidth = machines.gpu_bandwidth if trainers <= machines.gpus else machines.bandwidth
        return self.rates.weight_bytes * (trainers - 1) / trainers / bandwidth

    def _lose(self, at: float, node: int) -> Steps:
        """At a moment lose a machine, with every generator on it."""
        yield Work(at, "clock", "wait", on_cores=False)
        for worker in self.workers:
            if worker.node == node:
                worker.lost = True
                if worker.task is not None:
                    self.loop.interrupt(worker.task)
