"""Stop strings: found while tokens arrive, although a string and a token seldom end at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class StopStrings:
    """Looks for stop strings in what a tokenizer's tokens say (final)."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)  # pyright: ignore[reportReturnType]

    def find(self, tokens: Sequence[int], checked: int, stop: tuple[str, ...]) -> int | None:
        """How many tokens there are when the first stop string is complete, or None.

        The first `checked` tokens are known to hold none. A token says at least one byte, so a string that ends
        behind them begins at most its own bytes before.
        """
        start = max(0, checked - max(len(text.encode()) for text in stop) - 1)
        if not _holds(self.decode(tokens[start:]), stop):
            return None
        return next(end for end in range(checked + 1, len(tokens) + 1) if _holds(self.decode(tokens[start:end]), stop))

    def text(self, tokens: Sequence[int], stop: tuple[str, ...]) -> str:
        """The text of a whole completion, cut before its first stop string."""
        text = self.decode(tokens)
        places = [at for at in (text.find(one) for one in stop) if at >= 0]
        return text[: min(places)] if places else text


def _holds(text: str, stop: tuple[str, ...]) -> bool:
    return any(one in text for one in stop)
