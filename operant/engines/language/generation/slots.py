"""The rows of a generator: what each has written so far, and the one step that writes a token in every row.

All of it is tensors on the model's device, in places that never move, so that the same step runs as it is on a
CPU and as a captured graph on a GPU, several steps to one look from the host.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from operant.engines.language.generation.decoder import Decoder
from operant.engines.language.generation.generator import Sampling
from operant.engines.language.generation.sampling import draw


@dataclass(frozen=True)
class Slots:
    """One entry for each row: the last token and where it will stand, how much is written, and the writing itself.

    A row that is not alive is computed with the others, and nothing of it is kept. `mask` [rows, places, bytes] has
    the packed sampling masks, of no bytes where there are none.
    """

    token: Tensor
    position: Tensor
    count: Tensor
    limit: Tensor
    alive: Tensor
    chance: Tensor
    written: Tensor
    logprob: Tensor
    mask: Tensor

    @staticmethod
    def empty(rows: int, places: int, device: torch.device, mask_bytes: int = 0) -> Slots:
        """Rows that are not alive, with room for so many tokens and one to spare for rows that have ended."""

        def whole(*size: int) -> Tensor:
            return torch.zeros(size, dtype=torch.int64, device=device)

        return Slots(
            token=whole(rows),
            position=whole(rows),
            count=whole(rows),
            limit=whole(rows),
            alive=torch.zeros(rows, dtype=torch.bool, device=device),
            chance=torch.zeros((rows, places + 1), device=device),
            written=whole(rows, places + 1),
            logprob=torch.zeros((rows, places + 1), device=device),
            mask=torch.zeros((rows, places + 1, mask_bytes), dtype=torch.uint8, device=device),
        )

    def first(self, rows: int) -> Slots:
        """The first rows, in the same memory."""
        return Slots(*(getattr(self, field.name)[:rows] for field in fields(self)))

    def copy(self) -> Slots:
        """The same rows in memory of their own."""
        return Slots(*(getattr(self, field.name).clone() for field in fields(self)))

    def restore(self, kept: Slots) -> None:
        """Go back to what a copy holds."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(kept, field.name))

    def move(self, source: Tensor, target: Tensor) -> None:
        """Copy rows over others."""
        for field in fields(self):
            value = getattr(self, field.name)
            value[target] = value[source]

    def fill(self, rows: Tensor, lengths: Tensor, limits: Tensor, chance: Tensor) -> None:
        """Begin new completions in the rows; their first token is to follow by `begin`."""
        self.position[rows] = lengths
        self.limit[rows] = limits
        self.count[rows] = 1
        self.chance[rows, : chance.shape[1]] = chance

    def begin(self, rows: Tensor, token: Tensor, logprob: Tensor, mask: Tensor | None, ends: Tensor) -> None:
        """Write the first tokens."""
        if mask is not None:
            self.mask[rows, 0] = mask
        self.token[rows] = token
        self.written[rows, 0] = token
        self.logprob[rows, 0] = logprob
        self.alive[rows] = ~(is_any(token, ends) | (self.limit[rows] <= 1))


def is_any(token: Tensor, ends: Tensor) -> Tensor:
    """Whether each token is one of `ends`."""
    return (token[:, None] == ends).any(1)


def advance(decoder: Decoder, slots: Slots, columns: int, sampling: Sampling, ends: Tensor) -> None:
    """Write one more token in every row."""
    logits = decoder.step(slots.token, slots.position, columns)
    place = slots.count[:, None]
    token, logprob, mask = draw(logits, slots.chance.gather(1, place)[:, 0], sampling)
    slots.written.scatter_(1, place, token[:, None])
    slots.logprob.scatter_(1, place, logprob[:, None])
    if mask is not None:
        slots.mask.scatter_(1, place[:, :, None].expand(-1, 1, mask.shape[1]), mask[:, None])
    slots.token.copy_(token)
    slots.position.add_(slots.alive)
    slots.count.add_(slots.alive)
    slots.alive.logical_and_(~is_any(token, ends)).logical_and_(slots.count < slots.limit)


class Stepper:
    """Runs `advance` for a number of rows and steps: as it is on a CPU, as captured graphs on a GPU (final)."""

    def __init__(self, decoder: Decoder, slots: Slots, ends: Tensor, graphs: bool) -> None:
        self.decoder = decoder
        self.slots = slots
        self.ends = ends
        self.graphs: dict[tuple, torch.cuda.CUDAGraph] | None = {} if graphs else None
        # Graphs run one after another and keep nothing but the slots, so they may share their passing memory.
        self.pool = torch.cuda.graph_pool_handle() if graphs else None
        # One stream for all of them: cuBLAS keeps a workspace of 32 MiB for every stream that it has ever worked in.
        self.side = torch.cuda.Stream() if graphs else None

    def run(self, rows: int, columns: int, steps: int, sampling: Sampling) -> None:
        """Up to `steps` tokens for the first rows; on a CPU only until one of them ends, since a look is free there."""
        if self.graphs is not None:
            graph = self._graph(self._rounded(rows), columns, sampling)
            for _ in range(steps):
                graph.replay()
            return
        slots = self.slots.first(rows)
        for _ in range(steps):
            advance(self.decoder, slots, columns, sampling, self.ends)
            if not slots.alive.all():
                return

    def _rounded(self, rows: int) -> int:
        """The next power of two, since every number of rows has a graph of its own."""
        return min(1 << (rows - 1).bit_length(), self.decoder.slots)

    def _graph(self, rows: int, columns: int, sampling: Sampling) -> torch.cuda.CUDAGraph:
        assert self.graphs is not None
        drawn = (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, sampling.masks)
        key = (rows, columns, *drawn)
        if key not in self.graphs:
            self.graphs[key] = self._captured(rows, columns, sampling)
        return self.graphs[key]

    def _captured(self, rows: int, columns: int, sampling: Sampling) -> torch.cuda.CUDAGraph:
        """Capture one step. Kernels must have run before a capture, so two steps are made and taken back."""
        slots = self.slots.first(rows)
        kept = slots.copy()
        side = self.side
        assert side is not None
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                advance(self.decoder, slots, columns, sampling, self.ends)
        torch.cuda.current_stream().wait_stream(side)
        slots.restore(kept)
        graph = torch.cuda.CUDAGraph()
        # The trainer's thread may allocate meanwhile, which a capture of the whole process would fail by.
        with torch.cuda.graph(graph, pool=self.pool, stream=side, capture_error_mode="thread_local"):
            advance(self.decoder, slots, columns, sampling, self.ends)
        return graph
