"""The sizes of a model that memory depends on, read from a model without weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from operant.engines.language.policy.weights import base_model, lean_weights, supports


@dataclass(frozen=True)
class Adapter:
    """A linear layer of each decoder layer that LoRA adapts."""

    inputs: int
    rank: int


@dataclass(frozen=True)
class ModelSizes:
    """Of a decoder: widths in numbers per token, counts of weights, and `itemsize` bytes for each of them.

    `q_width` and `kv_width` are those of all query heads and of all key heads. `trained` weights have gradients and
    moments; `fused` ones are copies that the generator makes of others. `adapters` are those of one layer, by name;
    empty where every weight is trained. `packs` says whether the model can read lines without padding.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    q_width: int
    kv_width: int
    vocabulary: int
    itemsize: int
    parameters: int
    trained: int
    head_trained: bool
    fused: int
    adapters: dict[str, Adapter]
    lora_dropout: bool
    qk_norm: bool
    packs: bool

    @property
    def wide(self) -> int:
        """Bytes of a number in what is computed in float32 at least."""
        return max(4, self.itemsize)

    @property
    def grouped(self) -> bool:
        """Whether several query heads share their keys."""
        return self.heads != self.kv_heads

    @property
    def head(self) -> int:
        """The weights of the head, and of the embedding."""
        return self.vocabulary * self.hidden

    def reads(self, *names: str) -> bool:
        """Whether the input of a linear layer of one of these names is kept for its gradient."""
        return not self.adapters or any(name in self.adapters for name in names)


def model_sizes(model: nn.Module, dtype: torch.dtype, on_gpu: bool = True) -> ModelSizes:
    """The sizes of a model, which may be on the meta device, if its weights are of this type."""
    inner: Any = base_model(model)
    config = inner.config.get_text_config()
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    head = inner.get_output_embeddings().weight
    layer = _layers(inner, config.num_hidden_layers)[0]
    found = _adapters(layer)
    return ModelSizes(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        q_width=heads * width,
        kv_width=kv_heads * width,
        vocabulary=head.shape[0],
        itemsize=dtype.itemsize,
        parameters=sum(weight.numel() for weight in model.parameters()),
        trained=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        head_trained=head.requires_grad,
        fused=_fused(model, on_gpu),
        adapters=found,
        lora_dropout=any(isinstance(each, nn.Dropout) and each.p > 0 for each in layer.modules()) and bool(found),
        qk_norm=any(name.endswith("q_norm") for name, _ in layer.named_modules()),
        packs=supports(model) and bool(inner._supports_attention_backend),
    )


def _layers(inner: Any, count: int) -> nn.ModuleList:
    lists = (module for module in inner.modules() if isinstance(module, nn.ModuleList))
    return next(each for each in lists if len(each) == count)


def _adapters(layer: nn.Module) -> dict[str, Adapter]:
    adapted = {name.rpartition(".")[2]: module for name, module in layer.named_modules() if hasattr(module, "lora_A")}
    return {name: Adapter(module.in_features, next(iter(module.r.values()))) for name, module in adapted.items()}  # pyright: ignore


def _fused(model: nn.Module, on_gpu: bool) -> int:
    """Weights that the built-in generator has a second time: fused, merged, or on a CPU laid out by columns."""
    if not supports(model):
        return 0
    copies = sum(copy.numel() for copy, _, _ in lean_weights(model)._copies)
    if on_gpu:
        return copies
    linear = [module for module in base_model(model).modules() if isinstance(module, nn.Linear)]
    return max(copies, sum(module.weight.numel() for module in linear))
