"""A small model and its tokenizer, built from a configuration: nothing is downloaded, and a CPU can train it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

PAD, EOS = "<pad>", "<eos>"


@dataclass(frozen=True)
class TinySizes:
    """The sizes of a tiny model: `context` is the longest prompt and completion together, in bytes."""

    layers: int = 4
    width: int = 256
    heads: int = 4
    context: int = 256


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer whose tokens are the 256 bytes, a pad and an end of text; it has no chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([PAD, EOS, *letters])}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=fast, pad_token=PAD, eos_token=EOS, padding_side="right", clean_up_tokenization_spaces=False
    )


def tiny_model(sizes: TinySizes, seed: int) -> PreTrainedModel:
    """A Qwen2 model of random weights: the same seed gives the same weights, whatever was drawn before."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=258,
        hidden_size=sizes.width,
        intermediate_size=4 * sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads,
        max_position_embeddings=sizes.context,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)
