"""Replies in OpenAI's words: texts, log-probabilities and token ids of completions, whole or piece by piece."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from operant.engines.language.completion import Completion
from operant.engines.language.queries import Query
from operant.engines.language.scores import Best, Scored
from operant.engines.language.stops import Stops
from operant.engines.language.tool_calls import message_of

if TYPE_CHECKING:
    from operant.engines.language.model import Policy

UNFINISHED = "\ufffd"
"""What a decoder puts in the place of bytes that do not make a character yet."""


@dataclass(frozen=True)
class Written:
    """What is told of one choice: the prompt's tokens, the completion if one was written, and scores of both."""

    prompt: Sequence[int]
    completion: Completion | None
    scored: Scored | None


class Voice:
    """Puts what a model has written into JSON (final)."""

    def __init__(self, policy: Policy, name: str) -> None:
        self.policy = policy
        self.name = name
        self.stops = Stops(policy.tokenizer)

    def head(self, query: Query, chunk: bool = False) -> dict[str, Any]:
        """What stands at the top of a reply, or of a piece of one."""
        kind = ("chat.completion" if query.chat else "text_completion") + (".chunk" if chunk and query.chat else "")
        ident = ("chatcmpl-" if query.chat else "cmpl-") + uuid.uuid4().hex
        return {"id": ident, "object": kind, "created": int(time.time()), "model": self.name}

    def reply(self, query: Query, choices: Sequence[Written]) -> dict[str, Any]:
        """The whole reply; choices come prompt by prompt."""
        told = [self._choice(query, index, each) for index, each in enumerate(choices)]
        written = [each.completion for each in choices if each.completion is not None]
        version = {"version": written[0].version} if written else {}
        return {**self.head(query), "choices": told, "usage": usage(query, written), **version}

    def _choice(self, query: Query, index: int, each: Written) -> dict[str, Any]:
        completion = each.completion
        said = completion.text if completion is not None else ""
        text = self.stops.decode(each.prompt) + said if query.echo else said
        body: dict[str, Any] = {"message": said_as(text, query.tools)} if query.chat else {"text": text}
        body |= {"index": index, "finish_reason": completion.finish if completion is not None else "length"}
        if "tool_calls" in body.get("message", ()):
            body["finish_reason"] = "tool_calls"
        body["logprobs"] = None if query.logprobs is None else self._logprobs(query, each)
        if query.token_ids:
            body |= {"prompt_token_ids": list(each.prompt), "token_ids": list(completion.tokens if completion else ())}
        return body

    def _logprobs(self, query: Query, each: Written) -> dict[str, Any]:
        tokens = tuple(each.completion.tokens) if each.completion is not None else ()
        values: Sequence[float | None] = each.completion.logprobs if each.completion is not None else ()
        best: Sequence[Best] = ((),) * len(tokens)
        if each.scored is not None:
            start = 0 if query.echo else len(each.prompt)
            tokens = (*each.prompt, *tokens)[start:]
            values, best = each.scored.logprobs[start:], each.scored.best[start:]
        return self.logprobs(query, tokens, values, best)

    def logprobs(
        self, query: Query, tokens: Sequence[int], values: Sequence[float | None], best: Sequence[Best]
    ) -> dict[str, Any]:
        """Log-probabilities as the kind of request wants them."""
        if query.chat:
            each = zip(tokens, values, best, strict=True)
            return {
                "content": [{**self._said(t, v), "top_logprobs": [self._said(*b) for b in top]} for t, v, top in each]
            }
        texts = [self._token(token) for token in tokens]
        starts = list(accumulate(map(len, texts), initial=0))[:-1]
        return {
            "tokens": texts,
            "token_logprobs": list(values),
            "top_logprobs": [self._top(*each) for each in zip(tokens, values, best, strict=True)],
            "text_offset": starts,
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
        return str(self.policy.tokenizer.decode([token], clean_up_tokenization_spaces=False))


def said_as(text: str, tools: bool) -> dict[str, Any]:
    """A policy's words as a message; calls of tools are looked for only where tools were offered."""
    return message_of(text) if tools else {"role": "assistant", "content": text}


def reply_to_guest(model: str, prompt: Sequence[int], completion: Completion, tools: bool) -> dict[str, Any]:
    """A chat reply of one whole completion; its tokens are kept elsewhere."""
    said = said_as(completion.text, tools)
    ended = "length" if completion.finish == "length" else "tool_calls" if "tool_calls" in said else "stop"
    choice = {"index": 0, "message": said, "finish_reason": ended}
    read, wrote = len(prompt), len(completion.tokens)
    counts = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time())}
    return {**head, "model": model, "choices": [choice], "usage": counts}


class Unfolding:
    """The text of a completion as it grows: what was said is never taken back (final).

    Bytes that may become a character, and letters that may become a stop string, are held back.
    """

    def __init__(self, stops: Stops, stop: tuple[str, ...]) -> None:
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


def usage(query: Query, written: Sequence[Completion]) -> dict[str, int]:
    """How many tokens were read and written."""
    read, wrote = sum(len(each.tokens) for each in query.prompts), sum(len(each.tokens) for each in written)
    return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
