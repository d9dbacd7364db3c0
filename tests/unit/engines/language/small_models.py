"""Small models of random weights, one of each architecture that is met."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.tiny import TinySizes, byte_tokenizer

KINDS = ("tiny", "llama", "qwen2", "qwen3", "gpt2", "gemma3")
SIZES = TinySizes(layers=2, width=32, heads=2, context=64)

_COMMON: dict[str, Any] = {
    "vocab_size": 258,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def _config(kind: str) -> PreTrainedConfig:
    match kind:
        case "llama":
            return LlamaConfig(**_COMMON)
        case "qwen2":
            return Qwen2Config(**_COMMON)
        case "qwen3":
            return Qwen3Config(**_COMMON, head_dim=16)
        case "gemma3":
            return Gemma3TextConfig(
                **_COMMON, head_dim=16, sliding_window=6, layer_types=["sliding_attention", "full_attention"]
            )
        case _:
            return GPT2Config(
                vocab_size=258,
                n_embd=32,
                n_layer=2,
                n_head=4,
                n_positions=64,
                eos_token_id=1,
                pad_token_id=0,
                bos_token_id=None,
            )


def random_policy(kind: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> Policy:
    """A policy with weights large enough that its tokens differ in their chances."""
    if kind == "tiny":
        return load_policy("tiny", seed=seed, tiny=SIZES, dtype=dtype)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(_config(kind), attn_implementation="sdpa").to(dtype).eval()
    with torch.no_grad():
        for value in model.parameters():
            value += 0.2 * torch.randn_like(value)
    return Policy(model, byte_tokenizer(), (1,), 0, False, kind)
