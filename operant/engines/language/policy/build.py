"""From the settings of a model to a policy on its device."""

from __future__ import annotations

import os

import torch

from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import UsageError
from operant.run.heap import keep_large_blocks
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language import LoraSpec, ModelSpec


def build_policy(model: ModelSpec, seeds: Seeds, device: str) -> Policy:
    """The language model."""
    return load_policy(
        model.source,
        dtype=model.dtype,
        device=choose_device(device),
        seed=seeds.integer("model"),
        lora=None if model.lora is None else lora_arguments(model.lora),
        gradient_checkpointing=model.gradient_checkpointing,
        tiny=tiny_sizes(model),
    )


def tiny_sizes(model: ModelSpec) -> TinySizes:
    """Those of the model called tiny."""
    return TinySizes(model.tiny.layers, model.tiny.width, model.tiny.heads, model.tiny.context)


def lora_arguments(lora: LoraSpec) -> dict[str, object]:
    """The settings in peft's words."""
    targets: object = list(lora.targets) or "all-linear"
    return {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout, "target_modules": targets}


def choose_device(asked: str) -> str:
    """`asked`, or where it is `auto`, the GPU if there is one."""
    there = torch.cuda.is_available()
    if asked == "cuda" and not there:
        raise UsageError("meta.device is cuda, but torch finds no GPU here", remedy="-s meta.device=auto")
    return "cuda" if there and asked != "cpu" else "cpu"


def prepare_torch(spec: Spec, threads: int) -> None:
    """Make torch repeatable, and let it have its threads."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    torch.set_num_threads(threads)
    keep_large_blocks()
    if choose_device(spec.meta.device) == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
