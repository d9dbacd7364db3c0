"""The processes of a session that train one model together, and how a minibatch is dealt out among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import torch
import torch.distributed as dist

from operant.engines.language.policy.batching import Batch, Sample

P = ParamSpec("P")
R = TypeVar("R")
CPU = torch.device("cpu")


class LeaderDone(Exception):
    """The leader has finished, and so has whoever follows it."""


class Ranks:
    """The processes of this session, of which this is number `rank` of `size` (final).

    Alone, every method leaves things as they are.
    """

    def __init__(self) -> None:
        joined = dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.size = dist.get_world_size() if joined else 1

    @property
    def alone(self) -> bool:
        """Whether this process is the only one."""
        return self.size == 1

    def broadcast_call(self, who: str | None, what: str = "", arguments: tuple[Any, ...] = ()) -> None:
        """Tell the others which method of whom the leader is about to call, so that they do too; None ends them."""
        if self.rank == 0 and not self.alone:
            dist.broadcast_object_list([who, what, arguments], src=0, device=CPU)

    def receive_call(self) -> tuple[str, str, tuple[Any, ...]]:
        """Which method of whom the leader calls next; `LeaderDone` when it is none."""
        said: list[Any] = [None, "", ()]
        dist.broadcast_object_list(said, src=0, device=CPU)
        if said[0] is None:
            raise LeaderDone
        return said[0], said[1], said[2]

    def collect(self, part: Any) -> list[Any]:
        """The parts of all processes, which only the leader gets; of the others each keeps its own."""
        parts: list[Any] = [part] * self.size
        dist.gather_object(part, parts if self.rank == 0 else None, dst=0)
        return parts

    def total(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Each sum over all processes; all of them name the same ones in the same order."""
        if self.alone:
            return dict(sums)
        values = torch.tensor(list(sums.values()), dtype=torch.float64)
        dist.all_reduce(values)
        return dict(zip(sums, values.tolist(), strict=True))

    def pass_tokens(self, samples: Sequence[Sample], most: int) -> int:
        """The most tokens of one pass: few enough that every process has something to do."""
        if self.alone:
            return most
        tokens = sum(len(sample.prompt) + len(sample.completion) for sample in samples)
        return max(1, min(most, -(-tokens // self.size)))

    def deal(self, batches: Sequence[Batch]) -> list[tuple[Batch, float]]:
        """This process's micro-batches, each with the weight it counts with.

        Passes are made by all processes at once, so all have the same number of them: the largest are dealt
        first, to and fro, and where the last round is short a process repeats the smallest one with weight 0.
        """
        if self.alone:
            return [(batch, 1.0) for batch in batches]
        ordered = sorted(batches, key=lambda batch: -batch.padded_tokens)
        dealt: list[tuple[Batch, float]] = []
        for round_, start in enumerate(range(0, len(ordered), self.size)):
            offset = self.rank if round_ % 2 == 0 else self.size - 1 - self.rank
            at = start + offset
            dealt.append((ordered[at], 1.0) if at < len(ordered) else (ordered[-1], 0.0))
        return dealt


class Member(Protocol):
    """Whoever works in one of the processes."""

    ranks: Ranks


M = TypeVar("M", bound=Member)


def on_all_ranks(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """A method that all processes run when the leader calls it, with the same arguments, all by position."""

    @wraps(method)
    def call(self: M, *args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs, "what is told to other processes is told by position"
        self.ranks.broadcast_call(type(self).__name__, method.__name__, args)
        return method(self, *args, **kwargs)

    return call
