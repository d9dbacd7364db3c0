"""What a server of a language model can do, apart from how it is asked over the wire."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from operant.engines.language.completion import Completion
from operant.engines.language.desk import Ask, Desk
from operant.engines.language.generate import TorchGenerator
from operant.engines.language.model import Policy
from operant.engines.language.prompts import Template
from operant.engines.language.queries import BadRequest, Query, read_query
from operant.engines.language.replies import Unfolding, Voice, Written, usage
from operant.engines.language.weights import base_model
from operant.errors import UsageError

Piece = tuple[int, Sequence[int], Sequence[float], Completion | None]


class Service:
    """One model, served under `name` (final). Any thread may call it; one thread does the work."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        *,
        slots: int | None = None,
        allow_load: bool = False,
        template: Template = "chat",
    ) -> None:
        self.policy = policy
        self.template: Template = template
        self.name = name
        self.allow_load = allow_load
        self.generator = TorchGenerator(policy, slots=slots)
        self.desk = Desk(self.generator)
        self.voice = Voice(policy, name)
        self.since = int(time.time())

    def models(self) -> dict[str, Any]:
        """The list of the one model."""
        facts = {"id": self.name, "object": "model", "created": self.since, "owned_by": "operant"}
        return {"object": "list", "data": [facts | {"max_model_len": self.policy.context}]}

    def health(self) -> dict[str, Any]:
        """How the server stands; `loads` says whether it takes new weights."""
        facts = {"model": self.name, "version": self.generator.version, "waiting": self.desk.waiting}
        return {"status": "ok", **facts, "loads": self.allow_load}

    def query(self, body: Mapping[str, Any], chat: bool) -> Query:
        """The query in a body; `BadRequest` if there is none."""
        return read_query(body, chat, self.policy, self.name, self.template)

    def answer(self, query: Query) -> dict[str, Any]:
        """The whole reply to a query."""
        written: list[list[Completion]] = []
        if query.writes:
            written = self.desk.ask(Ask(query.prompts, query.sampling, query.seeded)).result()
        choices: list[tuple[Sequence[int], Completion | None]] = [
            (prompt.tokens, each)
            for number, prompt in enumerate(query.prompts)
            for each in (written[number] if written else [None])
        ]
        scored: Sequence[Any] = [None] * len(choices)
        if query.logprobs is not None and (query.echo or query.logprobs):
            texts = [(*prompt, *(each.tokens if each else ())) for prompt, each in choices]
            scored = self.desk.score(texts, query.sampling.temperature, query.logprobs).result()
        told = [Written(prompt, each, score) for (prompt, each), score in zip(choices, scored, strict=True)]
        return self.voice.reply(query, told)

    def stream(self, query: Query) -> Iterator[dict[str, Any]]:
        """The reply to a query piece by piece, as it is written."""
        ears = _Ears(query.sampling.n)
        answer = self.desk.ask(Ask(query.prompts, query.sampling, query.seeded, ears))
        answer.add_done_callback(lambda _: ears.heard.put(None))
        stops = [prompt.stop for prompt in query.prompts for _ in range(query.sampling.n)]
        unfolding = [Unfolding(self.voice.stops, stop) for stop in stops]
        head = self.voice.head(query, chunk=True)
        if query.chat:
            for index in range(len(unfolding)):
                yield {**head, "choices": [{"index": index, "delta": {"role": "assistant"}, "finish_reason": None}]}
        while (piece := ears.heard.get()) is not None:
            yield {**head, "choices": [self._piece(query, unfolding[piece[0]], piece)]}
        written = [each for row in answer.result() for each in row]
        if query.usage_streamed:
            yield {**head, "choices": [], "usage": usage(query, written)}

    def _piece(self, query: Query, text: Unfolding, piece: Piece) -> dict[str, Any]:
        index, tokens, logprobs, completion = piece
        new = text.grow(tokens) if completion is None else text.end(completion)
        start, text.tokens = text.tokens, len(tokens)
        body: dict[str, Any] = {"delta": {"content": new}} if query.chat else {"text": new}
        body |= {"index": index, "finish_reason": completion.finish if completion is not None else None}
        if query.logprobs is not None:
            fresh = tokens[start:]
            body["logprobs"] = self.voice.logprobs(query, fresh, logprobs[start:], ((),) * len(fresh))
        return body | ({"token_ids": list(tokens[start:])} if query.token_ids else {})

    def load(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take over the weights of a folder on this machine."""
        if not self.allow_load:
            raise BadRequest("this server takes no weights; start it with --allow-load", None, 403)
        path, version = body.get("path"), body.get("version")
        if not isinstance(path, str):
            raise BadRequest("path: must name a folder on the server's machine", "path")
        if not isinstance(version, int) or isinstance(version, bool):
            raise BadRequest("version: must be a whole number", "version")
        self.desk.do(lambda: self._take_weights(Path(path), version)).result()
        return {"model": self.name, "version": version}

    def _take_weights(self, folder: Path, version: int) -> None:
        try:
            files = sorted(folder.glob("model*.safetensors"))
            weights = {name: value for file in files for name, value in load_file(file).items()}
            own = dict(base_model(self.policy.model).named_parameters())
            lacking = [name for name, each in own.items() if name not in weights or weights[name].shape != each.shape]
            if lacking:
                raise BadRequest(f"path: {folder} has no weights {lacking[0]} of the right shape", "path")
            self.generator.load(weights, version)
        except (OSError, SafetensorError) as fault:
            raise BadRequest(f"path: {folder} cannot be read: {fault}", "path") from fault
        except UsageError as fault:
            raise BadRequest(f"path: {fault.cause}", "path") from fault

    def close(self) -> None:
        """Stop working."""
        self.desk.close()
        self.generator.close()


class _Ears:
    """Hears the completions of one query, whose choices are numbered through (final)."""

    follows = True

    def __init__(self, n: int) -> None:
        self.n = n
        self.heard: SimpleQueue[Piece | None] = SimpleQueue()

    def progress(self, prompt: int, index: int, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
        """Keep it for the thread that speaks with the client."""
        self.heard.put((prompt * self.n + index, tokens, logprobs, None))

    def done(self, prompt: int, index: int, completion: Completion) -> None:
        """Keep the end."""
        self.heard.put((prompt * self.n + index, completion.tokens, completion.logprobs, completion))
