"""Asynchronous rollouts: made and scored while the trainer trains, by weights that are at most so many updates old.

Each worker is a thread with a generator of its own on a copy of the weights. No more prompts are under way, queued
groups included, than the trainer can use before their weights are too old; that bounds the memory, and makes stale
groups rare. Each group is looked at again when the trainer takes it, and one that is too old is written anew.

The trainer takes groups in the order in which their prompts were drawn, whoever is done first. So which prompts a round
learns from does not depend on time, short answers do not come before long ones, and a run that was killed and resumed
learns from the prompts that it would have learnt from. Prompts are handed out in shares that begin at multiples of
their size, each with a seed of its own, so that a prompt is drawn with the same seed in every attempt. With a store,
groups are on disk until a checkpoint covers them, and a resumed run learns from them again instead of writing others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from operant.engines.language.generation.build import training_sampling
from operant.engines.language.generation.generator import Generator, Sampling
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import Group
from operant.engines.language.telemetry.heartbeat import TRAINER
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.mixture import ProblemSampler
from operant.run.seeding import Seeds
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.distributed.weight_sync_check import SentWeights, WeightSyncCheck

POLL_SECONDS = 0.5


class _Closed(Exception):
    """The rollouts are being closed; their threads end."""


@dataclass(frozen=True)
class PublishedWeights:
    """Weights as the trainer has published them; `number` tells two publications of one version apart.

    They were made by all prompts before the place `after`. Who loads them is checked by what was `sent`, where that is
    known.
    """

    number: int
    version: int
    weights: Mapping[str, Tensor]
    after: int = 0
    sent: SentWeights | None = None


class AsyncRollouts:
    """Rollout workers, and the groups that they have ready (final). Publish weights, start it, collect, close it."""

    def __init__(
        self,
        sampler: ProblemSampler,
        seeds: Seeds,
        settings: VerifiedAlgorithm,
        workers: Sequence[RolloutWorker],
        telemetry: Telemetry,
        seconds: float | None = None,
        check: WeightSyncCheck | None = None,
    ) -> None:
        self.check = check
        self.sync_metrics: deque[dict[str, float]] = deque()
        self.sampler = sampler
        self.seeds = seeds
        self.settings = settings
        self.telemetry = telemetry
        self.seconds = seconds
        self.wanted = settings.batch_size // settings.group_size
        self.room = self.wanted * max(1, settings.staleness // settings.updates_per_round)
        self.share = -(-self.wanted // len(workers))
        self._turn = threading.Condition()
        self.store: RolloutStore | None = None
        self._position = 0
        self._owed: deque[int] = deque()
        self._held: deque[int] = deque()
        self._ready: dict[int, Group] = {}
        self._published: PublishedWeights | None = None
        self._failure: BaseException | None = None
        self._closing = False
        self._workers = list(workers)
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), name=worker.lane, daemon=True) for worker in workers
        ]

    def use(self, store: RolloutStore) -> None:
        """Keep rollouts in a store."""
        self.store = store
        for worker in self._workers:
            worker.store = store

    def publish(self, weights: Mapping[str, Tensor], version: int, sent: SentWeights | None = None) -> None:
        """Let what is begun from now on be written by these weights, which nobody may change any more."""
        with self._turn:
            number = 0 if self._published is None else self._published.number + 1
            self._published = PublishedWeights(number, version, weights, self._first_untrained(), sent)

    def start(self, position: int, owed: Sequence[int] = ()) -> None:
        """Begin to write: first the prompts at the places owed, then those from `position` on."""
        with self._turn:
            self._position = position
            self._owed.extend(owed)
            if self._published is not None:
                self._published = replace(self._published, after=self._first_untrained())
        if self.store is not None:
            self.store.check_lineage(owed, position)
        for thread in self._threads:
            thread.start()

    def collect(self, version: int) -> list[Group]:
        """The groups of a round for a trainer that has made `version` updates; waits until there are enough."""
        heartbeat, groups = self.telemetry.watchdog.heartbeat(TRAINER), []
        with heartbeat.busy("waiting for groups", self._workers[0].lane), self.telemetry.trace.span("wait", TRAINER):
            while not self._enough(groups):
                group = self._next()
                if group.version < version - self.settings.staleness:
                    self._again(group, version)
                else:
                    groups.append(group)
        return groups

    def state(self) -> tuple[int, list[int]]:
        """The place of the next prompt to take, and the places of those taken that no trainer has had yet."""
        with self._turn:
            return self._position, sorted({*self._held, *self._owed})

    def close(self) -> None:
        """End the workers, and wait for them."""
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(60.0)

    def _enough(self, groups: Sequence[Group]) -> bool:
        if self.settings.zero_variance != "resample":
            return len(groups) >= self.wanted
        most = self.wanted * (1 + self.settings.resample_rounds)
        return sum(group.has_signal for group in groups) >= self.wanted or len(groups) >= most

    def _next(self) -> Group:
        """The group of the prompt that was drawn first."""
        heartbeat = self.telemetry.watchdog.heartbeat(TRAINER)
        with self._turn:
            while not (self._held and self._held[0] in self._ready):
                if self._failure is not None:
                    raise self._failure
                self.telemetry.watchdog.check()
                heartbeat.waits_for = self._slowest()
                self._turn.wait(POLL_SECONDS)
            group = self._ready.pop(self._held.popleft())
            self._turn.notify_all()
            return group

    def _first_untrained(self) -> int:
        """The place of the first prompt that no trainer has had."""
        return next(iter([*self._held, *self._owed]), self._position)

    def _slowest(self) -> str:
        """The worker that has been at one thing for longest."""
        return min(self._workers, key=lambda worker: worker.heartbeat.since).lane

    def _again(self, group: Group, version: int) -> None:
        """Have a stale group's prompt written anew, before others; the trainer waits for it."""
        assert group.place is not None
        self.telemetry.accounting.note(group.place, "stale", age=version - group.version)
        if self.store is not None:
            self.store.discard(group.place)
        with self._turn:
            self._held.appendleft(group.place)
            self._owed.appendleft(group.place)
            self._turn.notify_all()

    def _work(self, worker: RolloutWorker) -> None:
        """What a worker's thread does."""
        generator, loaded = worker.generator, -1
        try:
            setattr(generator, "beat", lambda: self._beat(worker))  # noqa: B010 (not every generator has one)
            while True:
                places, published = self._take(worker)
                if published.number != loaded:
                    with self.telemetry.trace.span("sync", worker.lane, version=published.version):
                        self._load(generator, published)
                    loaded = published.number
                self._hand_in(self._rollout(worker, places, published.after))
        except _Closed:
            return
        except BaseException as failure:
            with self._turn:
                self._failure = failure
                self._turn.notify_all()

    def _rollout(self, worker: RolloutWorker, places: Sequence[int], after: int) -> list[Group]:
        """The groups of prompts: from the store where they are there, else rolled out and stored."""
        problems = {place: self.sampler.take(place, 1)[0] for place in places}
        found = {place: self.store.read(place, problem) for place, problem in problems.items()} if self.store else {}
        groups = {place: group for place, group in found.items() if group is not None}
        for place, group in groups.items():
            self.telemetry.accounting.note(place, "restored", version=group.version)
        lacking = [place for place in places if place not in groups]
        if lacking:
            first = lacking[0] - lacking[0] % self.share
            asked = [problems[place] for place in lacking]
            rolled_out = worker.rollout(asked, self._sampling(first), lacking, first, after)
            if self.store is not None:
                for group in rolled_out:
                    self.store.write(group, after)
            groups |= dict(zip(lacking, rolled_out, strict=True))
        return list(groups.values())

    def _load(self, generator: Generator, published: PublishedWeights) -> None:
        """Let a worker's generator have the weights, and check that they arrived."""
        if self.check is None or published.sent is None:
            generator.load(published.weights, published.version)
        else:
            self.sync_metrics.append(self.check.sync(generator, published.weights, published.sent))

    def _take(self, worker: RolloutWorker) -> tuple[list[int], PublishedWeights]:
        """The next share of prompts and the weights to write them with; waits until there is room for all of it."""
        with self._turn, worker.heartbeat.busy("waiting for room", TRAINER):
            while self._published is None or len({*self._held, *self._next_share()}) > self.room:
                self._beat(worker)
                self._turn.wait(POLL_SECONDS)
            self._beat(worker)
            share = self._next_share()
            for place in share:
                self._draw(place)
            return share, self._published

    def _next_share(self) -> list[int]:
        """The places of the next prompts that belong together: those owed first, then the next ones of the sampler."""
        if not self._owed:
            return list(range(self._position, (self._position // self.share + 1) * self.share))
        share = self._owed[0] // self.share
        return list(takewhile(lambda place: place // self.share == share, self._owed))

    def _draw(self, place: int) -> None:
        """Have a prompt under way; one that is stale is so already."""
        if self._owed:
            self._owed.popleft()
        else:
            self._position += 1
        if place in self._held:
            self.telemetry.accounting.note(place, "redone", by="staleness")
        else:
            self.telemetry.accounting.draw(place, self.sampler.take(place, 1)[0].id)
            self._held.append(place)

    def _sampling(self, place: int) -> Sampling:
        return training_sampling(self.settings, self.seeds.integer("generate", place), self.seconds)

    def _hand_in(self, groups: Sequence[Group]) -> None:
        with self._turn:
            self._ready |= {group.place: group for group in groups if group.place is not None}
            self._turn.notify_all()

    def _beat(self, worker: RolloutWorker) -> None:
        """A sign of life; the place where a worker ends."""
        worker.heartbeat.beat()
        if self._closing:
            raise _Closed
