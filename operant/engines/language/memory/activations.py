"""Bytes that one pass of the trainer keeps for its backward pass, and those that it needs in passing.

Counted for decoders in the manner of Llama: in each layer two norms, queries, keys and values, attention by a kernel
that keeps no scores, and a gated perceptron. Norms are computed in float32 whatever the weights are.
`tests/unit/engines/language/memory/test_activations.py` holds the sums to what autograd really saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from operant.engines.language.memory.model_sizes import ModelSizes
from operant.engines.language.policy.batching import Pass, Sample
from operant.engines.language.policy.logprobs import CHUNK

MASK_ALIGNMENT = 8
"""On a GPU a mask whose rows are no multiple of so many numbers is copied by every layer."""


@dataclass(frozen=True)
class PassShape:
    """The sizes of a micro-batch.

    Attention sees rectangles: `cells` of all prompts (or rows) and completions, of which `prompt_cells` are the first,
    `key_cells` of what completions look at, and `mask` numbers of a mask. `lines` says whether it is a line without
    padding, from which the rectangles are copied.
    """

    tokens: int
    learnt: int
    cells: int
    prompt_cells: int
    key_cells: int = 0
    mask: int = 0
    mask_width: int = 0
    lines: bool = False

    @staticmethod
    def of(planned: Pass, samples: Sequence[Sample]) -> PassShape:
        """Those of a pass over some of the samples."""
        groups = planned.groups
        mine = [samples[number] for group in groups for number in group.samples]
        learnt = sum(len(sample.places) for sample in mine)
        longest = max(group.length for group in groups)
        if planned.layout == "rows":
            return PassShape(len(mine) * longest, learnt, len(mine) * longest, len(mine) * longest)
        tokens = sum(group.tokens for group in groups)
        if planned.layout == "packed":
            return PassShape(tokens, learnt, len(mine) * longest, len(mine) * longest, lines=True)
        prompt, own = max(len(group.prompt) for group in groups), max(len(each.completion) - 1 for each in mine)
        own, prompts, keys = max(own, 1), len(groups) * prompt, len(mine) * (prompt + max(own, 1))
        return PassShape(tokens, learnt, prompts + len(mine) * own, prompts, keys, keys * own, prompt + own, True)


def saved_bytes(sizes: ModelSizes, shape: PassShape, checkpointing: bool, on_gpu: bool = True) -> int:
    """What is kept between forward and backward pass, the logits left out."""
    layer = layer_bytes(sizes, shape, on_gpu)
    tokens, hidden, item = shape.tokens, sizes.hidden, sizes.itemsize
    last = tokens * (sizes.wide * hidden + (item * hidden if not sizes.adapters else 0)) + shape.learnt * item * hidden
    rotary = tokens * 2 * item * (sizes.q_width // sizes.heads) + item * shape.mask
    if checkpointing:
        return sizes.layers * tokens * item * hidden + layer + last + rotary
    return sizes.layers * layer + last + rotary


def layer_bytes(sizes: ModelSizes, shape: PassShape, on_gpu: bool = True) -> int:
    """What one layer keeps."""
    item, adapters = sizes.itemsize, sizes.adapters
    norm = sizes.wide * sizes.hidden + 4 + (0 if adapters else item * sizes.hidden)
    norms = 2 * norm + item * sizes.hidden * (
        sizes.reads("q_proj", "k_proj", "v_proj") + sizes.reads("gate_proj", "up_proj")
    )
    perceptron = item * sizes.intermediate * (3 + sizes.reads("down_proj"))
    low_rank = sum(item * each.rank for each in adapters.values())
    dropped = sum((item + 1) * each.inputs for each in adapters.values()) if sizes.lora_dropout else 0
    return shape.tokens * (norms + perceptron + low_rank + dropped) + _attention(sizes, shape, on_gpu)


def working_bytes(sizes: ModelSizes, shape: PassShape) -> int:
    """What the backward pass of a layer needs beside what was kept: gradients of its inner activations."""
    inner = 3 if sizes.adapters else 2
    return shape.tokens * sizes.itemsize * (inner * sizes.intermediate + 2 * sizes.hidden)


def forward_bytes(sizes: ModelSizes, shape: PassShape) -> int:
    """The most that a pass without gradients holds at once, the logits left out."""
    perceptron = sizes.itemsize * (2 * sizes.hidden + 4 * sizes.intermediate)
    norm = 2 * sizes.itemsize * sizes.hidden + 2 * sizes.wide * sizes.hidden
    return shape.tokens * max(perceptron, norm) + _attention(sizes, shape, True)


def input_bytes(sizes: ModelSizes, shape: PassShape, masked: bool) -> int:
    """The tokens of a micro-batch, what the loss knows of each, and the masks; all of a round lie on the device."""
    sampling = -(-sizes.vocabulary // 8) if masked else 0
    return 16 * shape.tokens + (44 + sampling) * shape.learnt + (16 * shape.cells if shape.lines else 0)


def head_forward_bytes(sizes: ModelSizes, shape: PassShape) -> int:
    """Logits of a forward pass: as computed, in float32, and as log-probabilities."""
    return 3 * sizes.wide * _logits(sizes, shape)


def head_backward_bytes(sizes: ModelSizes, shape: PassShape, entropy: bool, masked: bool) -> int:
    """Logits of a backward pass with the gradient of the head, where it is trained."""
    item, wide, logits = sizes.itemsize, sizes.wide, _logits(sizes, shape)
    gradient = wide * sizes.head if sizes.head_trained else 0
    product = item * sizes.head if sizes.head_trained else 0
    each = (6 if entropy else 4) * wide + item + (4 if masked else 0)
    return gradient + max(each * logits, (2 * wide + item) * logits + product)


def _logits(sizes: ModelSizes, shape: PassShape) -> int:
    return min(shape.learnt, max(1, CHUNK // sizes.vocabulary)) * sizes.vocabulary


def _attention(sizes: ModelSizes, shape: PassShape, on_gpu: bool) -> int:
    """Queries, keys, values and outputs of one layer, and the sums of its softmax."""
    item, query, key = sizes.itemsize, sizes.q_width, sizes.kv_width
    # Where no kernel lets query heads share keys (float32 on a GPU, and with a mask) keys are repeated; where they are
    # not, those of prompts are a part of the rectangle that holds all.
    repeats = sizes.grouped and on_gpu and item == 4
    of_prompts = shape.prompt_cells * query if repeats else shape.cells * key
    keys = 2 * (of_prompts + shape.key_cells * (query if sizes.grouped else key))
    completions = shape.cells - shape.prompt_cells
    outputs = shape.tokens * query * sizes.reads("o_proj") if shape.lines else 0
    copied = on_gpu and shape.mask_width % MASK_ALIGNMENT != 0
    norms = (4 + item) * (query + key) * shape.tokens if sizes.qk_norm else 0
    numbers = 2 * shape.cells * query + keys + outputs + (shape.mask if copied and completions else 0)
    return item * numbers + 4 * sizes.heads * shape.cells + norms
