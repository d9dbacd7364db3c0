"""The arithmetic of activations, held to what autograd saves: every storage once, weights left out."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from operant.engines.language.distributed.fsdp import Scorer
from operant.engines.language.memory.activations import PassShape, layer_bytes, saved_bytes
from operant.engines.language.memory.model_sizes import ModelSizes, model_sizes
from operant.engines.language.policy.batching import Batch, Sample, micro_batches, passes
from operant.engines.language.policy.model import Policy, as_policy
from operant.engines.language.policy.tiny import byte_tokenizer

SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}
ALL = {"r": 4, "target_modules": "all-linear"}
SOME = {"r": 4, "target_modules": ["q_proj", "down_proj"]}


GROUPED = {**SHAPE, "num_key_value_heads": 2}


def policy_of(
    layers: int,
    dtype: torch.dtype,
    lora: dict[str, Any] | None,
    checkpointing: bool,
    kind: Any = LlamaConfig,
    shape: dict[str, Any] = SHAPE,
) -> Policy:
    model = AutoModelForCausalLM.from_config(kind(**shape, num_hidden_layers=layers), attn_implementation="sdpa")
    return as_policy(model.to(dtype), byte_tokenizer(), "random", lora=lora, gradient_checkpointing=checkpointing)


def batch_of(layout: str) -> tuple[Batch, PassShape]:
    rng = random.Random(1)

    def some(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(2, 300) for _ in range(count))

    prompts = [some(length) for length in (9, 12, 20)]
    samples = [Sample(prompt, some(rng.randrange(10, 30))) for prompt in prompts for _ in range(4)]
    share_from = 0.0 if layout == "shared" else None
    asked = {"share_from": share_from, "packing": layout == "packed"}
    (planned,) = passes(samples, 10**6, **asked)
    (batch,) = micro_batches(samples, 10**6, **asked)
    return batch, PassShape.of(planned, samples)


def saved_by_autograd(model: torch.nn.Module, batch: Batch) -> int:
    """Bytes of all storages that a forward pass keeps for the backward pass, but for those of weights."""
    scorer, kept = Scorer(model), {}
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        held.append(tensor)  # so that no storage is given to another tensor
        return tensor

    held: list[torch.Tensor] = []
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        scorer(batch, 1.0).logprobs.sum()
    return sum(kept.values())


def sizes_of(layers: int, dtype: torch.dtype, lora: dict[str, Any] | None, *kind: Any) -> ModelSizes:
    with torch.device("meta"):
        return model_sizes(policy_of(layers, dtype, lora, False, *kind).model, dtype, on_gpu=False)


@pytest.mark.parametrize("layout", ["rows", "packed", "shared"])
@pytest.mark.parametrize("lora", [None, ALL, SOME], ids=["full", "lora", "lora of some"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_layer_keeps_what_the_arithmetic_says(layout: str, lora: dict[str, Any] | None, dtype: torch.dtype) -> None:
    batch, shape = batch_of(layout)
    found = [saved_by_autograd(policy_of(layers, dtype, lora, False).model, batch) for layers in (2, 4)]
    told = layer_bytes(sizes_of(2, dtype, lora), shape, on_gpu=False)
    assert told == pytest.approx((found[1] - found[0]) / 2, rel=0.02)


@pytest.mark.parametrize("layout", ["rows", "packed", "shared"])
def test_query_heads_that_share_keys_are_counted(layout: str) -> None:
    (batch, shape), kind = batch_of(layout), (LlamaConfig, GROUPED)
    found = [saved_by_autograd(policy_of(n, torch.bfloat16, None, False, *kind).model, batch) for n in (2, 4)]
    told = layer_bytes(sizes_of(2, torch.bfloat16, None, *kind), shape, on_gpu=False)
    assert told == pytest.approx((found[1] - found[0]) / 2, rel=0.02)


def test_norms_of_queries_and_keys_are_counted() -> None:
    batch, shape = batch_of("rows")
    found = [saved_by_autograd(policy_of(n, torch.bfloat16, None, False, Qwen3Config).model, batch) for n in (2, 4)]
    told = layer_bytes(sizes_of(2, torch.bfloat16, None, Qwen3Config), shape, on_gpu=False)
    assert told == pytest.approx((found[1] - found[0]) / 2, rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_checkpointing_keeps_the_inputs_of_layers(dtype: torch.dtype) -> None:
    (batch, shape), sizes = batch_of("rows"), sizes_of(2, dtype, None)
    found = [saved_by_autograd(policy_of(layers, dtype, None, True).model, batch) for layers in (2, 4)]
    assert (found[1] - found[0]) / 2 == shape.tokens * sizes.hidden * sizes.itemsize
    more = saved_bytes(sizes_of(4, dtype, None), shape, True) - saved_bytes(sizes, shape, True)
    assert more == found[1] - found[0]


def test_a_whole_pass_keeps_what_the_arithmetic_says() -> None:
    (batch, shape), dtype = batch_of("rows"), torch.bfloat16
    found = saved_by_autograd(policy_of(6, dtype, None, False).model, batch)
    kept_logs = 4 * len(batch.at) * SHAPE["vocab_size"]  # so few that they are not computed again
    told = saved_bytes(sizes_of(6, dtype, None), shape, False, on_gpu=False)
    assert told == pytest.approx(found - kept_logs, rel=0.03)


@pytest.mark.parametrize("layout", ["rows", "packed", "shared"])
def test_the_shape_of_a_pass_is_that_of_its_batch(layout: str) -> None:
    batch, shape = batch_of(layout)
    assert (shape.tokens, shape.learnt) == (batch.padded_tokens, len(batch.at))
    if batch.branches is not None:
        assert shape.cells == len(batch.branches.places)
        assert shape.mask == batch.branches.mask(torch.float32).numel()
