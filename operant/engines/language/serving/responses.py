"""Response schemas in OpenAI's words: texts, log-probabilities and token ids, whole or piece by piece."""

from __future__ import annotations

import time
import uuid
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from operant.engines.language.generation.generator import Completion
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.policy.scoring import Best, TextScores
from operant.engines.language.policy.tool_calls import message_of
from operant.engines.language.serving.batcher import Piece
from operant.engines.language.serving.requests import GenerationRequest

if TYPE_CHECKING:
    from operant.engines.language.policy.model import Policy

UNFINISHED = "\ufffd"
"""What a decoder puts in the place of bytes that do not make a character yet."""


@dataclass(frozen=True)
class Choice:
    """What is told of one choice: the prompt's tokens, the completion if one was written, and scores of both."""

    prompt: Sequence[int]
    completion: Completion | None
    scored: TextScores | None = None


class ResponseEncoder:
    """Puts what a model has written into JSON (final)."""

    def __init__(self, policy: Policy, name: str) -> None:
        self.policy = policy
        self.name = name
        self.stops = StopStrings(policy.tokenizer)
        self._token_texts: dict[int, str] = {}

    def head(self, chat: bool, chunk: bool = False) -> dict[str, Any]:
        """What stands at the top of a reply, or of a piece of one."""
        kind = ("chat.completion" if chat else "text_completion") + (".chunk" if chunk and chat else "")
        ident = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex
        return {"id": ident, "object": kind, "created": int(time.time()), "model": self.name}

    def reply(self, request: GenerationRequest, choices: Sequence[Choice]) -> dict[str, Any]:
        """The whole reply; choices come prompt by prompt."""
        told = [self._choice(request, index, each) for index, each in enumerate(choices)]
        written = [each.completion for each in choices if each.completion is not None]
        version = {"version": written[0].version} if written else {}
        return {**self.head(request.chat), "choices": told, "usage": usage(request, written), **version}

    def _choice(self, request: GenerationRequest, index: int, each: Choice) -> dict[str, Any]:
        completion = each.completion
        said = completion.text if completion is not None else ""
        text = self.stops.decode(each.prompt) + said if request.echo else said
        body: dict[str, Any] = {"message": message(text, request.tools)} if request.chat else {"text": text}
        body |= {"index": index, "finish_reason": completion.finish if completion is not None else "length"}
        if "tool_calls" in body.get("message", ()):
            body["finish_reason"] = "tool_calls"
        body["logprobs"] = None if request.logprobs is None else self._logprobs(request, each)
        if request.token_ids:
            body |= {"prompt_token_ids": list(each.prompt), "token_ids": list(completion.tokens if completion else ())}
        if completion is not None and completion.mask is not None:
            body["sampling_mask"] = b64encode(completion.mask.data).decode()
        return body

    def _logprobs(self, request: GenerationRequest, each: Choice) -> dict[str, Any]:
        tokens = tuple(each.completion.tokens) if each.completion is not None else ()
        values: Sequence[float | None] = each.completion.logprobs if each.completion is not None else ()
        best: Sequence[Best] = ((),) * len(tokens)
        if each.scored is not None:
            start = 0 if request.echo else len(each.prompt)
            tokens = (*each.prompt, *tokens)[start:]
            values, best = each.scored.logprobs[start:], each.scored.best[start:]
        return self.logprobs(request.chat, tokens, values, best)

    def logprobs(
        self, chat: bool, tokens: Sequence[int], values: Sequence[float | None], best: Sequence[Best]
    ) -> dict[str, Any]:
        """Log-probabilities as the kind of request wants them."""
        each = list(zip(tokens, values, best, strict=True))
        if chat:
            return {
                "content": [{**self._said(t, v), "top_logprobs": [self._said(*b) for b in top]} for t, v, top in each]
            }
        texts = [self._token(token) for token in tokens]
        return {
            "tokens": texts,
            "token_logprobs": list(values),
            "top_logprobs": [self._top(*one) for one in each],
            "text_offset": list(accumulate(map(len, texts), initial=0))[:-1],
        }

    def _top(self, token: int, value: float | None, best: Best) -> dict[str, float] | None:
        """The likeliest tokens and the one that is there; of two with the same text the likelier."""
        if value is None:
            return None
        told: dict[str, float] = {}
        for each, logprob in (*best, (token, value)):
            told.setdefault(self._token(each), logprob)
        return told

    def _said(self, token: int, value: float | None) -> dict[str, Any]:
        text = self._token(token)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    def _token(self, token: int) -> str:
        if token not in self._token_texts:
            text = self.policy.tokenizer.decode([token], clean_up_tokenization_spaces=False)
            self._token_texts[token] = str(text)
        return self._token_texts[token]


class StreamEncoder:
    """Puts what a model is writing into the chunks of one reply (final)."""

    def __init__(self, encoder: ResponseEncoder, request: GenerationRequest) -> None:
        self.encoder, self.request = encoder, request
        self._head = encoder.head(request.chat, chunk=True)
        stops = [prompt.stop for prompt in request.prompts for _ in range(request.sampling.n)]
        self._texts = [GrowingText(encoder.stops, stop) for stop in stops]

    def opening(self) -> list[dict[str, Any]]:
        """The chunks before anything is written: in a chat, who speaks."""
        if not self.request.chat:
            return []
        roles = [{"index": index, "delta": {"role": "assistant"}} for index in range(len(self._texts))]
        return [self._chunk({**each, "finish_reason": None}) for each in roles]

    def chunk(self, piece: Piece) -> dict[str, Any]:
        """What is new in a piece."""
        text, tokens, completion = self._texts[piece.choice], piece.tokens, piece.completion
        new = text.grow(tokens) if completion is None else text.end(completion)
        start, text.tokens = text.tokens, len(tokens)
        body: dict[str, Any] = {"delta": {"content": new}} if self.request.chat else {"text": new}
        body |= {"index": piece.choice, "finish_reason": completion.finish if completion is not None else None}
        if self.request.logprobs is not None:
            fresh = tokens[start:]
            values = piece.logprobs[start:]
            body["logprobs"] = self.encoder.logprobs(self.request.chat, fresh, values, ((),) * len(fresh))
        return self._chunk(body | ({"token_ids": list(tokens[start:])} if self.request.token_ids else {}))

    def ending(self, written: Sequence[Completion]) -> list[dict[str, Any]]:
        """The chunks after everything is written."""
        return [{**self._head, "choices": [], "usage": usage(self.request, written)}] * self.request.usage_streamed

    def _chunk(self, choice: dict[str, Any]) -> dict[str, Any]:
        return {**self._head, "choices": [choice]}


class GrowingText:
    """The text of a completion as it grows: what was said is never taken back (final).

    Bytes that may become a character, and letters that may become a stop string, are held back.
    """

    def __init__(self, stops: StopStrings, stop: tuple[str, ...]) -> None:
        self.stops = stops
        self.stop = stop
        self.tokens = 0
        self._said = 0

    def grow(self, tokens: Sequence[int]) -> str:
        """What can be said now that has not been said."""
        text = self.stops.text(tokens, self.stop).rstrip(UNFINISHED)
        longest = max(map(len, self.stop), default=0)
        for held in range(min(longest - 1, len(text)), 0, -1):
            if any(one.startswith(text[-held:]) for one in self.stop):
                text = text[:-held]
                break
        return self._say(text)

    def end(self, completion: Completion) -> str:
        """The rest."""
        return self._say(completion.text)

    def _say(self, text: str) -> str:
        new, self._said = text[self._said :], max(self._said, len(text))
        return new


def message(text: str, tools: bool) -> dict[str, Any]:
    """A policy's words as a message; calls of tools are looked for only where tools were offered."""
    return message_of(text) if tools else {"role": "assistant", "content": text}


def usage(request: GenerationRequest, written: Sequence[Completion]) -> dict[str, int]:
    """How many tokens were read and written."""
    read, wrote = sum(len(each.tokens) for each in request.prompts), sum(len(each.tokens) for each in written)
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
