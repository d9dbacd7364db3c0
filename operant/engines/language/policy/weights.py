"""The weights of a Llama-like model as the lean decoder wants them: read in place, or fused and kept in step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from operant.errors import UsageError

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True)
class Shape:
    """The sizes that a decoder needs."""

    layers: int
    heads: int
    kv_heads: int
    head_width: int
    epsilon: float


@dataclass(frozen=True)
class LayerWeights:
    """One layer: queries, keys and values in one matrix, gate and up in another; matrices are [in, out]."""

    norm_in: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    qk_norm: Tensor | None
    out: Tensor
    norm_mlp: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True)
class LeanWeights:
    """All weights; `refresh` must be called after the model's own have changed. `head` is [in, out]."""

    shape: Shape
    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor
    rotary: nn.Module
    _copies: list[tuple[Tensor, tuple[nn.Module, ...], str]] = field(repr=False)

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy anew what was fused or merged; the rest is the model's own memory."""
        for copy, modules, kind in self._copies:
            torch.cat([_plain(module, kind) for module in modules], out=copy)

    def held(self, model: nn.Module) -> Iterator[tuple[str, Tensor]]:
        """The weights that `plain_weights` names, tied ones too, each as it is here: the copy where there is one."""
        pieces = {
            (id(module), kind): piece
            for copy, modules, kind in self._copies
            for module, piece in zip(modules, copy.split([_rows(each, kind) for each in modules]), strict=True)
        }
        for name, module, kind in _named(model, tied=True):
            piece = pieces.get((id(module), kind))
            yield name, _plain(module, kind) if piece is None else piece


def supports(model: nn.Module) -> bool:
    """Whether the model is one of those that the lean decoder computes exactly."""
    config: Any = base_model(model).config
    if config.model_type not in FAMILIES or config.hidden_act != "silu":
        return False
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    windowed = config.model_type == "mistral" and config.sliding_window is not None
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    biased = any(
        _bias(layer.self_attn.o_proj) is not None
        or _bias(layer.mlp.down_proj) is not None
        or _bias(layer.mlp.gate_proj) is not None
        for layer in base_model(model).model.layers
    )
    return not sliding and not windowed and rope in ROPE_TYPES and not biased


def base_model(model: nn.Module) -> Any:
    """The Hugging Face model inside a peft wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "peft_config") else model  # pyright: ignore[reportCallIssue]


def vocabulary_size(model: nn.Module) -> int:
    """How many logits the model's head gives."""
    return int(base_model(model).get_output_embeddings().weight.shape[0])


def plain_weights(model: nn.Module, tied: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Every weight by the name that Hugging Face's folders give it, with what LoRA adds to it.

    Those that are tied come once, or under each of their names.
    """
    for name, module, kind in _named(model, tied):
        yield name, _plain(module, kind)


def _named(model: nn.Module, tied: bool) -> Iterator[tuple[str, nn.Module, str]]:
    """Every weight's plain name, and the module and the attribute that hold it."""
    inner = base_model(model)
    for name, _ in inner.named_parameters(remove_duplicate=not tied):
        where, _, kind = name.rpartition(".")
        owner, _, inside = where.rpartition(".")
        if inside == "base_layer":
            yield f"{owner}.{kind}", inner.get_submodule(owner), kind
        elif ".lora_" not in where:
            yield name, inner.get_submodule(where), kind


@torch.no_grad()
def copy_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a model by name; one that it does not have is refused."""
    own = base_model(model).state_dict()
    unknown = sorted(set(weights) - set(own))
    if unknown:
        raise UsageError(f"the generator's model has no weights called {', '.join(unknown[:4])}")
    for name, value in weights.items():
        if own[name].data_ptr() != value.data_ptr():
            own[name].copy_(value)


def lean_weights(model: nn.Module) -> LeanWeights:
    """The weights of a model that `supports` accepts."""
    inner = base_model(model)
    config = inner.config
    copies: list[tuple[Tensor, tuple[nn.Module, ...], str]] = []
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    shape = Shape(config.num_hidden_layers, heads, kv_heads, width, config.rms_norm_eps)
    layers = tuple(_layer(layer, shape, copies) for layer in inner.model.layers)
    found = LeanWeights(
        shape=shape,
        embedding=_take((inner.model.embed_tokens,), "weight", copies),
        layers=layers,
        norm=_take((inner.model.norm,), "weight", copies),
        head=_matrix((inner.lm_head,), copies),
        rotary=inner.model.rotary_emb,
        _copies=copies,
    )
    found.refresh()
    return found


def _layer(layer: Any, shape: Shape, copies: list) -> LayerWeights:
    attention, mlp = layer.self_attn, layer.mlp
    qkv = (attention.q_proj, attention.k_proj, attention.v_proj)
    return LayerWeights(
        norm_in=_take((layer.input_layernorm,), "weight", copies),
        qkv=_matrix(qkv, copies),
        qkv_bias=None if _bias(attention.q_proj) is None else _take(qkv, "bias", copies),
        qk_norm=_norm_table(attention, shape, copies),
        out=_matrix((attention.o_proj,), copies),
        norm_mlp=_take((layer.post_attention_layernorm,), "weight", copies),
        gate_up=_matrix((mlp.gate_proj, mlp.up_proj), copies),
        down=_matrix((mlp.down_proj,), copies),
    )


def _norm_table(attention: Any, shape: Shape, copies: list) -> Tensor | None:
    """Qwen3's norms of queries and keys: one row of weights for each head."""
    if not hasattr(attention, "q_norm"):
        return None
    modules = (attention.q_norm,) * shape.heads + (attention.k_norm,) * shape.kv_heads
    return _take(modules, "weight", copies).view(len(modules), shape.head_width)


def _matrix(modules: Sequence[nn.Module], copies: list) -> Tensor:
    """The weights of linear layers side by side, [in, out].

    On a CPU they are laid out that way too: products of few rows are up to half again as fast then (Arm; equal on x86).
    """
    if next(modules[0].parameters()).device.type == "cpu":
        return _copied(modules, "weight", copies, turned=True).t()
    return _take(modules, "weight", copies).t()


def _take(modules: Sequence[nn.Module], kind: str, copies: list) -> Tensor:
    """One parameter in place, or a fused copy that `refresh` keeps up to date."""
    if len(modules) == 1 and not _adapted(modules[0]):
        return getattr(modules[0], kind).detach()
    return _copied(modules, kind, copies)


def _copied(modules: Sequence[nn.Module], kind: str, copies: list, turned: bool = False) -> Tensor:
    """Parameters in one tensor, one below the other, yet to be filled by `refresh`; `turned` in memory by columns."""
    parts = [_plain(module, kind) for module in modules]
    size = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    copy = parts[0].new_empty(size[::-1]).t() if turned else parts[0].new_empty(size)
    copies.append((copy, tuple(modules), kind))
    return copy


def _adapted(module: nn.Module) -> bool:
    return hasattr(module, "base_layer")


def _plain(module: Any, kind: str) -> Tensor:
    """A parameter with what LoRA adds to it."""
    if not _adapted(module):
        return getattr(module, kind).detach()
    base = getattr(module.base_layer, kind).detach()
    if kind == "bias":
        return base
    return base + sum(module.get_delta_weight(name).detach().to(base.dtype) for name in module.active_adapters)


def _rows(module: Any, kind: str) -> int:
    return getattr(module.base_layer if _adapted(module) else module, kind).shape[0]


def _bias(module: Any) -> Tensor | None:
    return getattr(module.base_layer if _adapted(module) else module, "bias", None)
