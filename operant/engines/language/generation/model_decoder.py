"""The decoder of every other architecture: the model's own `forward`, with a cache that keeps rows apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache

from operant.engines.language.generation.decoder import Decoder, Prefilled
from operant.engines.language.policy.weights import base_model, plain_weights


class _RowCache(Cache):
    """A view of a decoder's cache for one step: every row writes at its own position (final)."""

    def __init__(self, cache: Tensor, positions: Tensor, columns: int) -> None:
        super().__init__(layers=[])
        self.rows = cache[:, :, : positions.shape[0]]
        self.at = torch.arange(positions.shape[0], device=positions.device)
        self.positions = positions
        self.columns = columns

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any):
        """Write one token's keys and values, and give those of the columns in use."""
        del args, kwargs
        rows = self.rows[layer_idx]
        rows[:, self.at, :, self.positions] = torch.stack([key_states[:, :, 0], value_states[:, :, 0]], 1)
        return rows[0, :, :, : self.columns], rows[1, :, :, : self.columns]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The columns before this step's token, for models that ask."""
        del layer_idx
        return self.columns - 1


class ModelDecoder(Decoder):
    """Any causal model of Hugging Face with keys and values of one shape in all layers (final)."""

    def __init__(self, model: nn.Module, slots: int, length: int) -> None:
        super().__init__(model, slots, length)
        config: Any = base_model(model).config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ())
        self.window = config.sliding_window if "sliding_attention" in kinds else None
        self.columns = torch.arange(length, device=next(model.parameters()).device)

    def refresh(self) -> None:
        """Nothing: the model reads its own weights."""

    def held(self) -> Iterable[tuple[str, Tensor]]:
        """The model's own weights."""
        return plain_weights(self.model, tied=True)

    def prefill(self, tokens: Tensor, lengths: Tensor) -> Prefilled:
        """Read prompts with the model's own causal mask."""
        cache = DynamicCache()
        prompts = torch.arange(tokens.shape[0], device=tokens.device)
        found = base_model(self.model).base_model(tokens, past_key_values=cache, use_cache=True)
        layers: list[Any] = cache.layers
        kept = torch.stack([torch.stack([layer.keys, layer.values]) for layer in layers])
        last = found.last_hidden_state[prompts, lengths - 1]
        return Prefilled(kept, base_model(self.model).get_output_embeddings()(last))

    def step(self, tokens: Tensor, positions: Tensor, columns: int) -> Tensor:
        """One token for each row."""
        mask = self._mask(positions, columns)
        found = base_model(self.model)(
            input_ids=tokens[:, None],
            position_ids=positions[:, None],
            attention_mask=mask,
            past_key_values=_RowCache(self.cache, positions, columns),
            use_cache=True,
        )
        return found.logits[:, 0]

    def _mask(self, positions: Tensor, columns: int) -> Tensor | dict[str, Tensor]:
        """Which columns each row may look at, for layers that look at all and for those with a window."""
        at = self.columns[:columns]
        full = (at <= positions[:, None])[:, None, None]
        if self.window is None:
            return full
        near = (at > positions[:, None] - self.window)[:, None, None]
        return {"full_attention": full, "sliding_attention": full & near}
