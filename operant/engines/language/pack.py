"""Micro-batches: samples side by side in rows of like length, so that few tokens are padding.

Completions of one prompt may share a row: the prompt is then read once, and a mask keeps the completions from
seeing each other. Whatever the layout, the results are one flat list of completion tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

SHARED_LENGTH = 512
"""A row that several completions share is no longer than this, since attention pays for what the mask hides."""


@dataclass(frozen=True)
class Sample:
    """A prompt and a completion in tokens.

    Where not all of the completion was written by the policy, `learnt` has the places of the tokens that were.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    learnt: tuple[int, ...] | None = None

    @property
    def places(self) -> Sequence[int]:
        """The places of the tokens that are learnt from."""
        return range(len(self.completion)) if self.learnt is None else self.learnt


@dataclass(frozen=True)
class Batch:
    """Rows for one pass of the model.

    `tokens` and `positions` are [rows, length]; `mask` is None for plain causal rows, else [rows, 1, length, length]
    and true where a token may look. The T tokens to learn from stand one sample after the other in the order of
    `samples`, the samples' numbers in the list that was given: `at` says which flat place of the rows predicts
    each of them, `targets` which token it is, and `owner` to which sample it belongs.
    """

    samples: tuple[int, ...]
    tokens: Tensor
    positions: Tensor
    mask: Tensor | None
    at: Tensor
    targets: Tensor
    owner: Tensor

    @property
    def padded_tokens(self) -> int:
        """What the pass costs: all tokens of the rows, padding included."""
        return self.tokens.numel()

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **moved)


@dataclass(frozen=True)
class _Row:
    """A prompt and the samples that share it."""

    prompt: tuple[int, ...]
    samples: tuple[int, ...]
    length: int


def micro_batches(
    samples: Sequence[Sample], max_tokens: int, *, pad_id: int = 0, share_prompts: bool = True
) -> list[Batch]:
    """All samples in batches of at most `max_tokens` padded tokens, longest rows first.

    The same samples always give the same batches. A row that is longer by itself has a batch of its own.
    """
    rows = sorted(_rows(samples, share_prompts, max_tokens), key=lambda row: (-row.length, row.samples))
    bins: list[list[_Row]] = []
    for row in rows:
        if bins and bins[-1][0].length * (len(bins[-1]) + 1) <= max_tokens:
            bins[-1].append(row)
        else:
            bins.append([row])
    return [_batch(rows, samples, pad_id) for rows in bins]


def _rows(samples: Sequence[Sample], share: bool, max_tokens: int) -> list[_Row]:
    """Samples of one prompt go into rows together, up to the length that is worth it."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for number, sample in enumerate(samples):
        by_prompt.setdefault(sample.prompt, []).append(number)
    longest = min(SHARED_LENGTH, max_tokens) if share else 0
    rows = []
    for prompt, numbers in by_prompt.items():
        taken, length = [numbers[0]], len(prompt) + _fed(samples[numbers[0]])
        for number in numbers[1:]:
            if length + _fed(samples[number]) <= longest:
                taken, length = [*taken, number], length + _fed(samples[number])
            else:
                rows.append(_Row(prompt, tuple(taken), length))
                taken, length = [number], len(prompt) + _fed(samples[number])
        rows.append(_Row(prompt, tuple(taken), length))
    return rows


def _fed(sample: Sample) -> int:
    """Tokens of a completion that are read: the last one predicts nothing."""
    return len(sample.completion) - 1


def _batch(rows: list[_Row], samples: Sequence[Sample], pad_id: int) -> Batch:
    length = rows[0].length
    tokens, positions, parts = [], [], []
    at: list[int] = []
    targets: list[int] = []
    owner: list[int] = []
    for number, row in enumerate(rows):
        start, line = number * length, list(row.prompt)
        place, part = list(range(len(line))), [0] * len(line)
        for which, index in enumerate(row.samples, 1):
            completion, places = samples[index].completion, samples[index].places
            before = [start + len(row.prompt) - 1, *range(start + len(line), start + len(line) + len(completion) - 1)]
            at += [before[place] for place in places]
            targets += [completion[place] for place in places]
            owner += [index] * len(places)
            place += range(len(row.prompt), len(row.prompt) + len(completion) - 1)
            part += [which] * (len(completion) - 1)
            line += completion[:-1]
        padding = length - len(line)
        tokens.append(line + [pad_id] * padding)
        positions.append(place + [0] * padding)
        parts.append(part + [-1] * padding)
    alone = all(len(row.samples) == 1 for row in rows)
    return Batch(
        samples=tuple(index for row in rows for index in row.samples),
        tokens=torch.tensor(tokens),
        positions=torch.arange(length).expand(len(rows), length) if alone else torch.tensor(positions),
        mask=None if alone else _mask(torch.tensor(parts)),
        at=torch.tensor(at),
        targets=torch.tensor(targets),
        owner=torch.tensor(owner),
    )


def _mask(parts: Tensor) -> Tensor:
    """A token sees the prompt, part 0, and what came before it in its own part; padding sees padding."""
    length = parts.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    seen = (parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None])
    return (causal & seen)[:, None]
