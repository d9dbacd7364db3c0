"""Generation by all processes of a session: each answers its share of the prompts with its own copy of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from operant.engines.language.distributed.ranks import Ranks, together
from operant.engines.language.generation.generator import Completion, Generator, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator

if TYPE_CHECKING:
    from torch import Tensor


class SharedGenerator:
    """Writes with the generators of all processes (final).

    What is drawn depends on the prompt and the seed alone, so the completions are those that one process would write.
    """

    def __init__(self, own: Generator, ranks: Ranks) -> None:
        self.own = own
        self.ranks = ranks

    @together
    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts; only the leader has them all."""
        rank, size = self.ranks.rank, self.ranks.size
        parts = self.ranks.collect(self.own.generate(prompts[rank::size], sampling))
        return [parts[index % size][index // size] for index in range(len(prompts))] if rank == 0 else []

    @together
    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Take over weights by name; what is generated from now on has this version."""
        self.own.load(weights, version)

    def close(self) -> None:
        """Let go of this process's memory."""
        self.own.close()


def shared(generator: Generator, ranks: Ranks) -> Generator:
    """The generator of all processes where there are several; one that is no part of them stays as it is."""
    return generator if ranks.alone or not isinstance(generator, TorchGenerator) else SharedGenerator(generator, ranks)
