"""Fingerprints: equal for equal bits however they lie, different for one bit, one swap and one precision."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.fingerprint import Fingerprint, fingerprint, tokenizer_digest
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.weights import plain_weights
from tests.unit.engines.language.small_models import KINDS, random_policy

POLICY = random_policy("tiny")


def of(**weights: torch.Tensor) -> Fingerprint:
    return fingerprint(weights.items(), POLICY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5)])
def test_every_single_bit_counts(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    whole = of(weight=weight)
    size = weight.element_size()
    for place in (0, weight.numel() // 2, weight.numel() - 1):
        for bit in range(8 * size):
            changed = weight.clone()
            changed.view(-1).view(torch.uint8)[place * size + bit // 8] ^= 1 << bit % 8
            assert of(weight=changed).differing(whole) == ["weight"]


def test_swapped_rows_columns_and_elements_count() -> None:
    weight = torch.arange(30.0).view(5, 6)
    rows, columns, one = weight.clone(), weight.clone(), weight.clone()
    rows[[0, 3]] = rows[[3, 0]]
    columns[:, [1, 4]] = columns[:, [4, 1]]
    one[2, [0, 1]] = one[2, [1, 0]]
    assert len({str(of(weight=each)) for each in (weight, rows, columns, one)}) == 4


def test_layout_and_order_do_not_count_but_names_and_precision_do() -> None:
    weight, bias = torch.randn(4, 8), torch.randn(8)
    turned = weight.t().contiguous().t()
    assert of(a=weight, b=bias).differing(of(b=bias, a=turned)) == []
    assert of(a=weight, b=bias).differing(of(a=weight)) == ["b"]
    half = of(a=weight.bfloat16())
    assert of(a=weight).differing(half) == ["a"]
    assert fingerprint([("a", weight)], POLICY, {"a": "bfloat16"}).differing(half) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_holds_the_models_weights_under_their_own_names(kind: str) -> None:
    policy = random_policy(kind)
    generator = TorchGenerator(policy)
    generator.generate([Prompt((5, 6), 2)], Sampling())
    expected = fingerprint(plain_weights(policy.model, tied=True), policy)
    assert generator.fingerprint() == expected
    changed = copy.deepcopy(policy)
    with torch.no_grad():
        next(changed.model.parameters())[0, 0] += 1
    assert len(fingerprint(plain_weights(changed.model, tied=True), policy).differing(expected)) in (1, 2)


def test_a_tokenizer_from_a_folder_is_the_same_though_it_knows_more_than_the_model_can_write(tmp_path: Path) -> None:
    read = load_policy(str(write_folder(POLICY, tmp_path)))
    assert len(read.tokenizer) > len(POLICY.tokenizer)
    assert tokenizer_digest(read) == tokenizer_digest(POLICY)
