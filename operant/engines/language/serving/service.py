"""What a server of a language model can do, apart from how it is asked over the wire."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file

from operant.engines.language.generation.generator import Completion
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.chat_template import Template
from operant.engines.language.policy.model import Policy
from operant.engines.language.policy.scoring import PASS_TOKENS, TextScores, score_texts
from operant.engines.language.policy.weights import base_model
from operant.engines.language.serving.batcher import BatchRequest, Piece, RequestBatcher
from operant.engines.language.serving.requests import GenerationRequest, read_json, read_request
from operant.engines.language.serving.responses import Choice, ResponseEncoder, StreamEncoder
from operant.errors import UsageError
from operant.web.access import RequestError

T = TypeVar("T")


class ModelService:
    """One model, served under `name` (final). At most `queue` requests wait for the model.

    Two threads work beside the event loop: the batcher's has the model, and one has a tokenizer of its own, for a
    tokenizer serves one thread at a time. Whoever stops waiting for an answer ends the work on it.
    """

    def __init__(
        self,
        policy: Policy,
        name: str,
        *,
        slots: int | None = None,
        allow_load: bool = False,
        template: Template = "chat",
        queue: int = 256,
    ) -> None:
        self.policy = policy
        self.name = name
        self.allow_load = allow_load
        self.template: Template = template
        self.queue = queue
        self.generator = TorchGenerator(policy, slots=slots)
        self.batcher = RequestBatcher(self.generator)
        self.since = int(time.time())
        self._texts = replace(policy, tokenizer=copy.deepcopy(policy.tokenizer))
        self._encoder = ResponseEncoder(self._texts, name)
        self._text_thread = ThreadPoolExecutor(1, "texts")

    def models(self) -> dict[str, Any]:
        """The list of the one model."""
        facts = {"id": self.name, "object": "model", "created": self.since, "owned_by": "operant"}
        return {"object": "list", "data": [facts | {"max_model_len": self.policy.context}]}

    def health(self) -> dict[str, Any]:
        """How the server stands; `loads` says whether it takes new weights, `sampling_masks` whether it gives masks."""
        facts = {"model": self.name, "version": self.generator.version, "waiting": self.batcher.waiting}
        return {"status": "ok", **facts, "loads": self.allow_load, "sampling_masks": True}

    async def read(self, body: bytes, chat: bool) -> GenerationRequest:
        """The request in a body; `RequestError` if there is none, or if too many wait already."""
        if self.batcher.waiting >= self.queue:
            raise RequestError(f"{self.queue} requests wait for the model; try again later", None, 429)
        return await self._in_text_thread(
            lambda: read_request(read_json(body), chat, self._texts, self.name, self.template)
        )

    async def answer(self, request: GenerationRequest) -> dict[str, Any]:
        """The whole reply to a request."""
        written: list[list[Completion]] = []
        if request.writes:
            batched = BatchRequest(request.prompts, request.sampling, request.seeded)
            written = await asyncio.wrap_future(self.batcher.submit(batched))
        choices = [
            Choice(prompt.tokens, each)
            for number, prompt in enumerate(request.prompts)
            for each in (written[number] if written else [None])
        ]
        if request.logprobs is not None and request.rescores:
            scores = await self._score(choices, request.sampling.temperature, request.logprobs)
            choices = [replace(each, scored=score) for each, score in zip(choices, scores, strict=True)]
        return await self._in_text_thread(partial(self._encoder.reply, request, choices))

    async def _score(self, choices: Sequence[Choice], temperature: float, top: int) -> list[TextScores]:
        """How likely texts are, a bounded number of tokens at a time so that others are not kept waiting."""
        texts = [(*each.prompt, *(each.completion.tokens if each.completion else ())) for each in choices]
        found: list[TextScores] = []
        while len(found) < len(texts):
            part, tokens = list[tuple[int, ...]](), 0
            for text in texts[len(found) :]:
                tokens += len(text)
                if part and tokens > PASS_TOKENS:
                    break
                part.append(text)
            score = partial(score_texts, self.policy, part, temperature, top)
            found += await asyncio.wrap_future(self.batcher.do(score))
        return found

    async def stream(self, request: GenerationRequest) -> AsyncGenerator[dict[str, Any]]:
        """The reply to a request piece by piece, as it is written."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Piece | None]()

        def put(piece: Piece | None) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it the stream
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        batched = BatchRequest(request.prompts, request.sampling, request.seeded, put)
        batched.answer.add_done_callback(lambda _: put(None))
        self.batcher.submit(batched)
        encoder = StreamEncoder(self._encoder, request)
        try:
            for chunk in encoder.opening():
                yield chunk
            while (piece := await pieces.get()) is not None:
                yield await self._in_text_thread(partial(encoder.chunk, piece))
            for chunk in encoder.ending(list(chain.from_iterable(batched.answer.result()))):
                yield chunk
        finally:
            batched.answer.cancel()

    async def load(self, body: bytes) -> dict[str, Any]:
        """Take over the weights of a folder on this machine."""
        if not self.allow_load:
            raise RequestError("this server takes no weights; start it with --allow-load", None, 403)
        fields = read_json(body)
        path, version = fields.get("path"), fields.get("version")
        if not isinstance(path, str) or not path or "\0" in path:
            raise RequestError("path: must name a folder on the server's machine", "path")
        if not isinstance(version, int) or isinstance(version, bool) or abs(version) >= 2**63:
            raise RequestError("version: must be a whole number", "version")
        await asyncio.wrap_future(self.batcher.do(lambda: self._take_weights(Path(path), version)))
        return {"model": self.name, "version": version}

    async def fingerprint(self) -> dict[str, Any]:
        """The version and the fingerprint of the weights that wrote the last completions."""
        if not self.allow_load:
            raise RequestError("this server takes no weights; start it with --allow-load", None, 403)
        held = await asyncio.wrap_future(self.batcher.do(self.generator.fingerprint))
        return {"version": self.generator.version, "tokenizer": held.tokenizer, "sums": held.sums}

    def _take_weights(self, folder: Path, version: int) -> None:
        try:
            files = sorted(folder.glob("model*.safetensors"))
            weights = {name: value for file in files for name, value in load_file(file).items()}
            own = dict(base_model(self.policy.model).named_parameters())
            lacking = [name for name, each in own.items() if name not in weights or weights[name].shape != each.shape]
            if lacking:
                raise RequestError(f"path: {folder} has no weights {lacking[0]} of the right shape", "path")
            self.generator.load(weights, version)
        except (OSError, SafetensorError) as fault:
            raise RequestError(f"path: {folder} cannot be read: {fault}", "path") from fault
        except UsageError as fault:
            raise RequestError(f"path: {fault.cause}", "path") from fault

    async def _in_text_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._text_thread, work)

    def close(self) -> None:
        """Stop working."""
        self._text_thread.shutdown(cancel_futures=True)
        self.batcher.close()
        self.generator.close()
