"""Micro-batches: what goes through a model in one pass, as few tokens as possible.

Completions of one prompt go in one line with it, so that the prompt is read once (see `shared_prompts.py`); other
samples stand side by side in rows of like length, or packed one behind the other in a line without padding. Whatever
the layout, the results are one flat list of completion tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from operant.engines.language.policy.shared_prompts import Branches, lay_out


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
class Segment:
    """A part of a line: a prompt, or where `completion` is not None, what is read of one that goes on from it."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...] | None = None

    @property
    def read(self) -> int:
        """How many tokens of it are read: the last one of a completion predicts nothing."""
        return len(self.prompt) if self.completion is None else len(self.completion) - 1


@dataclass(frozen=True)
class Batch:
    """Tokens for one pass of the model.

    `tokens` and `positions` are [rows, length]: plain causal rows, or with `branches` one row that holds prompts and
    the completions that share them, stretch by stretch as in `line`. The T tokens to learn from stand one sample after
    the other in the order of `samples`, the samples' numbers in the list that was given: `at` says which flat place of
    the rows predicts each of them, `targets` which token it is, and `owner` to which sample it belongs.
    """

    samples: tuple[int, ...]
    tokens: Tensor
    positions: Tensor
    branches: Branches | None
    at: Tensor
    targets: Tensor
    owner: Tensor
    line: tuple[Segment, ...] = ()

    @property
    def padded_tokens(self) -> int:
        """What the pass costs: all tokens of the rows, padding included."""
        return self.tokens.numel()

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor | Branches)}
        return replace(self, **moved)


@dataclass(frozen=True)
class PromptGroup:
    """A prompt and the samples that share it; `length` is that of its longest sample, `tokens` of all together."""

    prompt: tuple[int, ...]
    samples: tuple[int, ...]
    length: int
    tokens: int


@dataclass(frozen=True)
class Pass:
    """Samples that go through the model together, by prompt, and how they stand.

    Side by side in padded rows, one behind the other (packed), or behind prompts that they share.
    """

    layout: Literal["rows", "packed", "shared"]
    groups: tuple[PromptGroup, ...]


def micro_batches(
    samples: Sequence[Sample],
    max_tokens: int,
    *,
    pad_id: int = 0,
    share_from: float | None = None,
    packing: bool = False,
) -> list[Batch]:
    """All samples in batches of at most `max_tokens` tokens, padding included, longest samples first.

    The same samples always give the same batches. What is longer by itself has a batch of its own. Where the model
    follows branches, completions share their prompt if that saves at least the part `share_from` of their tokens, and
    with `packing` the others stand in a line too, so that there is no padding.
    """
    planned = passes(samples, max_tokens, share_from=share_from, packing=packing)
    return [_made(each, samples, pad_id) for each in planned]


def passes(
    samples: Sequence[Sample], max_tokens: int, *, share_from: float | None = None, packing: bool = False
) -> list[Pass]:
    """Which samples make up each of the micro-batches."""
    found = _prompt_groups(samples, share_from, max_tokens)
    groups = sorted(found, key=lambda group: (-group.length, group.samples))
    together = [group for group in groups if len(group.samples) > 1]
    alone = [group for group in groups if len(group.samples) == 1]
    shared = [Pass("shared", tuple(some)) for some in _bins(together, max_tokens, padded=False)]
    layout = "packed" if packing else "rows"
    return shared + [Pass(layout, tuple(some)) for some in _bins(alone, max_tokens, padded=not packing)]


def _made(planned: Pass, samples: Sequence[Sample], pad_id: int) -> Batch:
    match planned.layout:
        case "shared":
            return _line(planned.groups, samples)
        case "packed":
            return _packed(planned.groups, samples)
        case "rows":
            return _rows(planned.groups, samples, pad_id)


def _prompt_groups(samples: Sequence[Sample], share_from: float | None, max_tokens: int) -> list[PromptGroup]:
    """Samples of one prompt belong together where that pays, as far as a pass has room for them."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for number, sample in enumerate(samples):
        by_prompt.setdefault(sample.prompt, []).append(number)
    groups = []
    for prompt, numbers in by_prompt.items():
        fed = [_fed(samples[number]) for number in numbers]
        share = share_from is not None and _saving(len(prompt), fed) >= share_from
        parts = _divided(numbers, fed, max_tokens - len(prompt)) if share else [[number] for number in numbers]
        groups += [_prompt_group(prompt, some, samples) for some in parts]
    return groups


def _divided(numbers: Sequence[int], fed: Sequence[int], room: int) -> list[list[int]]:
    """Samples in parts that feed no more than `room` tokens, or are one sample."""
    parts: list[list[int]] = []
    used = 0
    for number, own in zip(numbers, fed, strict=True):
        if parts and used + own <= room:
            parts[-1].append(number)
            used += own
        else:
            parts.append([number])
            used = own
    return parts


def _prompt_group(prompt: tuple[int, ...], numbers: Sequence[int], samples: Sequence[Sample]) -> PromptGroup:
    fed = [_fed(samples[number]) for number in numbers]
    return PromptGroup(prompt, tuple(numbers), len(prompt) + max(fed), len(prompt) + sum(fed))


def _saving(prompt: int, fed: Sequence[int]) -> float:
    """The part of all tokens that need not be read where completions share a prompt of this length."""
    return prompt * (len(fed) - 1) / (prompt * len(fed) + sum(fed))


def _bins(groups: list[PromptGroup], max_tokens: int, padded: bool) -> list[list[PromptGroup]]:
    """Families for one pass each; they are given by falling length, to which rows side by side are padded."""
    bins: list[list[PromptGroup]] = []
    cost = 0
    for group in groups:
        own = bins[-1][0].length if padded and bins else group.tokens
        if bins and cost + own <= max_tokens:
            bins[-1].append(group)
            cost += own
        else:
            bins.append([group])
            cost = group.tokens
    return bins


def _fed(sample: Sample) -> int:
    """Tokens of a completion that are read: the last one predicts nothing."""
    return len(sample.completion) - 1


def _line(groups: Sequence[PromptGroup], samples: Sequence[Sample]) -> Batch:
    """All prompts, then all completions, in one row."""
    numbers = [number for group in groups for number in group.samples]
    parents = [parent for parent, group in enumerate(groups) for _ in group.samples]
    prompts = [len(group.prompt) for group in groups]
    fed = [_fed(samples[number]) for number in numbers]
    tokens = [token for group in groups for token in group.prompt]
    positions = [place for length in prompts for place in range(length)]
    ends = torch.tensor(prompts).cumsum(0).sub(1).tolist()
    predictors = []
    for number, parent in zip(numbers, parents, strict=True):
        written = samples[number].completion[:-1]
        predictors.append([ends[parent], *range(len(tokens), len(tokens) + len(written))])
        tokens += written
        positions += range(prompts[parent], prompts[parent] + len(written))
    whole = _batch(
        numbers,
        samples,
        predictors,
        _integers([tokens]),
        _integers([positions]),
        lay_out(prompts, fed, parents),
    )
    return replace(whole, line=_segments(groups, samples))


def _segments(groups: Sequence[PromptGroup], samples: Sequence[Sample]) -> tuple[Segment, ...]:
    written = [(group.prompt, number) for group in groups for number in group.samples]
    return (
        *(Segment(group.prompt) for group in groups),
        *(Segment(prompt, samples[number].completion) for prompt, number in written),
    )


def _rows(groups: Sequence[PromptGroup], samples: Sequence[Sample], pad_id: int) -> Batch:
    """Samples side by side, padded to the longest."""
    numbers = [number for group in groups for number in group.samples]
    length = groups[0].length
    rows = [[*samples[number].prompt, *samples[number].completion[:-1]] for number in numbers]
    predictors = []
    for row, number in enumerate(numbers):
        first = row * length + len(samples[number].prompt) - 1
        predictors.append(list(range(first, first + len(samples[number].completion))))
    tokens = _integers([row + [pad_id] * (length - len(row)) for row in rows])
    positions = torch.arange(length).expand(len(rows), length)
    return _batch(numbers, samples, predictors, tokens, positions, None)


def _packed(groups: Sequence[PromptGroup], samples: Sequence[Sample]) -> Batch:
    """Samples one behind the other in one row, each of which looks at itself alone."""
    numbers = [number for group in groups for number in group.samples]
    tokens: list[int] = []
    positions: list[int] = []
    predictors = []
    for number in numbers:
        sample = samples[number]
        first = len(tokens) + len(sample.prompt) - 1
        predictors.append(list(range(first, first + len(sample.completion))))
        tokens += (*sample.prompt, *sample.completion[:-1])
        positions += range(len(sample.prompt) + _fed(sample))
    branches = lay_out([group.length for group in groups], [], [])
    return _batch(numbers, samples, predictors, _integers([tokens]), _integers([positions]), branches)


def _batch(
    numbers: Sequence[int],
    samples: Sequence[Sample],
    predictors: Sequence[Sequence[int]],
    tokens: Tensor,
    positions: Tensor,
    branches: Branches | None,
) -> Batch:
    """`predictors` has for every token of each sample's completion the flat place that predicts it."""
    pairs = zip(numbers, predictors, strict=True)
    at = [where[place] for number, where in pairs for place in samples[number].places]
    targets = [samples[number].completion[place] for number in numbers for place in samples[number].places]
    owner = [number for number in numbers for _ in samples[number].places]
    return Batch(
        samples=tuple(numbers),
        tokens=tokens,
        positions=positions,
        branches=branches,
        at=_integers(at),
        targets=_integers(targets),
        owner=_integers(owner),
    )


def _integers(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    """A tensor by way of numpy, which reads lists several times faster than torch does."""
    return torch.from_numpy(np.array(values, dtype=np.int64))
