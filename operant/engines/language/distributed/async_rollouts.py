"""Completions written and judged while the trainer trains, by weights that are at most so many updates old.

Each writer is a thread with a generator of its own on a copy of the weights. No more prompts are under way, queued
groups included, than the trainer can use before their weights are too old; that bounds the memory, and makes stale
groups rare. Each group is looked at again when the trainer takes it, and one that is too old is written anew.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operant.engines.language.generation.generator import Sampling
from operant.engines.language.rollouts.single_turn import Group, Rounds
from operant.engines.language.telemetry.heartbeat import TRAINER
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.mixture import Course
from operant.run.seeding import Seeds
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

if TYPE_CHECKING:
    from torch import Tensor

POLL_SECONDS = 0.5


class _Closed(Exception):
    """The pipeline is being closed; whoever works in it leaves."""


@dataclass(frozen=True)
class Sheet:
    """Weights as the trainer has published them; `number` tells two publications of one version apart."""

    number: int
    version: int
    weights: Mapping[str, Tensor]


class Pipeline:
    """Writers, and the groups that they have ready (final). Publish weights, start it, collect, close it."""

    def __init__(
        self,
        course: Course,
        seeds: Seeds,
        settings: VerifiedAlgorithm,
        writers: Sequence[Rounds],
        witness: Witness,
        seconds: float | None = None,
    ) -> None:
        self.course = course
        self.seeds = seeds
        self.settings = settings
        self.witness = witness
        self.seconds = seconds
        self.wanted = settings.batch_size // settings.group_size
        self.room = self.wanted * max(1, settings.staleness // settings.updates_per_round)
        self.share = -(-self.wanted // len(writers))
        self._turn = threading.Condition()
        self._position = 0
        self._owed: deque[int] = deque()
        self._held: set[int] = set()
        self._ready: deque[Group] = deque()
        self._sheet: Sheet | None = None
        self._failure: BaseException | None = None
        self._closing = False
        self._writers = list(writers)
        self._threads = [
            threading.Thread(target=self._work, args=(rounds,), name=rounds.lane, daemon=True) for rounds in writers
        ]

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Let what is begun from now on be written by these weights, which nobody may change any more."""
        with self._turn:
            number = 0 if self._sheet is None else self._sheet.number + 1
            self._sheet = Sheet(number, version, weights)

    def start(self, position: int, owed: Sequence[int] = ()) -> None:
        """Begin to write: first the prompts at the places owed, then those from `position` on."""
        self._position = position
        self._owed.extend(owed)
        for thread in self._threads:
            thread.start()

    def collect(self, version: int) -> list[Group]:
        """The groups of a round for a trainer that has made `version` updates; waits until there are enough."""
        pulse, groups = self.witness.watch.pulse(TRAINER), []
        with pulse.busy("waiting for groups", self._writers[0].lane), self.witness.trace.span("wait", TRAINER):
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
            return self._position, sorted([*self._held, *self._owed])

    def close(self) -> None:
        """Let the writers leave, and wait for them."""
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
        return sum(group.teaches for group in groups) >= self.wanted or len(groups) >= most

    def _next(self) -> Group:
        """The group that has been ready for longest."""
        pulse = self.witness.watch.pulse(TRAINER)
        with self._turn:
            while not self._ready:
                if self._failure is not None:
                    raise self._failure
                self.witness.watch.check()
                pulse.waits_for = self._slowest()
                self._turn.wait(POLL_SECONDS)
            group = self._ready.popleft()
            assert group.place is not None
            self._held.discard(group.place)
            self._turn.notify_all()
            return group

    def _slowest(self) -> str:
        """The writer that has been at one thing for longest."""
        return min(self._writers, key=lambda rounds: rounds.pulse.since).lane

    def _again(self, group: Group, version: int) -> None:
        """Have a stale group's prompt written anew, before others."""
        assert group.place is not None
        self.witness.ledger.note(group.place, "stale", age=version - group.version)
        with self._turn:
            self._owed.appendleft(group.place)
            self._turn.notify_all()

    def _work(self, rounds: Rounds) -> None:
        """What a writer's thread does."""
        generator, loaded = rounds.generator, -1
        try:
            setattr(generator, "beat", lambda: self._beat(rounds))  # noqa: B010 (not every generator has one)
            while True:
                places, sheet = self._take(rounds)
                if sheet.number != loaded:
                    with self.witness.trace.span("sync", rounds.lane, version=sheet.version):
                        generator.load(sheet.weights, sheet.version)
                    loaded = sheet.number
                problems = [self.course.take(place, 1)[0] for place in places]
                self._hand_in(rounds.play(problems, self._sampling(places[0]), places))
        except _Closed:
            return
        except BaseException as failure:
            with self._turn:
                self._failure = failure
                self._turn.notify_all()

    def _take(self, rounds: Rounds) -> tuple[list[int], Sheet]:
        """The next prompts to write and the weights to write them with; waits until there is room for some."""
        with self._turn, rounds.pulse.busy("waiting for room", TRAINER):
            while self._sheet is None or len(self._held) >= self.room:
                self._beat(rounds)
                self._turn.wait(POLL_SECONDS)
            self._beat(rounds)
            places = [self._choose() for _ in range(min(self.share, self.room - len(self._held)))]
            self._held.update(places)
            return places, self._sheet

    def _choose(self) -> int:
        """The place of a prompt that is owed, or the next one of the course."""
        ledger = self.witness.ledger
        if self._owed:
            place = self._owed.popleft()
            if ledger.is_open(place):
                ledger.note(place, "redone", by="staleness")
                return place
        else:
            place, self._position = self._position, self._position + 1
        ledger.take(place, self.course.take(place, 1)[0].id)
        return place

    def _sampling(self, place: int) -> Sampling:
        settings, seed = self.settings, self.seeds.integer("generate", place)
        return Sampling(settings.group_size, settings.temperature, settings.top_p, settings.top_k, seed, self.seconds)

    def _hand_in(self, groups: Sequence[Group]) -> None:
        with self._turn:
            self._ready.extend(groups)
            self._turn.notify_all()

    def _beat(self, rounds: Rounds) -> None:
        """A sign of life; the place where a writer leaves."""
        rounds.pulse.beat()
        if self._closing:
            raise _Closed
