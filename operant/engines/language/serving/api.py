"""An OpenAI-compatible API of a model, as a Starlette application behind the guard of all our servers.

GET  /health  /v1/models  /v1/fingerprint
POST /v1/completions  /v1/chat/completions  /v1/load
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from operant.engines.language.serving.requests import GenerationRequest
from operant.engines.language.serving.service import ModelService
from operant.errors import OperantError, UsageError
from operant.web.access import Access, RequestError
from operant.web.guard import App, Guard, Limits, Receive, Scope, Send, refuse, to_json

SECONDS = 600.0
"""How long one request may take by default."""


def build_app(
    service: ModelService, access: Access | None = None, limits: Limits | None = None, seconds: float = SECONDS
) -> App:
    """The application that answers with `service`; one request may take `seconds`."""
    api = Api(service, seconds)

    async def health(_: Request) -> Response:
        return reply(service.health())

    async def models(_: Request) -> Response:
        return reply(service.models())

    async def load(request: Request) -> Response:
        return reply(await service.load(await request.body()))

    async def fingerprint(_: Request) -> Response:
        return reply(await service.fingerprint())

    routes = [
        Route("/health", health),
        Route("/v1/models", models),
        Route("/v1/fingerprint", fingerprint),
        Route("/v1/completions", api.completions, methods=["POST"]),
        Route("/v1/chat/completions", api.chat, methods=["POST"]),
        Route("/v1/load", load, methods=["POST"]),
    ]
    return guarded(routes, access or Access(), limits)


def guarded(routes: Sequence[BaseRoute], access: Access, limits: Limits | None = None) -> App:
    """An application of routes whose refusals are errors in OpenAI's form, behind the guard."""
    handlers: dict[Any, Any] = dict.fromkeys((RequestError, OperantError, HTTPException, Exception), _refuse)
    inner = Starlette(routes=routes, exception_handlers=handlers)
    inner.router.redirect_slashes = False
    app = Guard(inner, access, limits)
    if not access.origins:
        return app
    return CORSMiddleware(app, allow_origins=list(access.origins), allow_methods=["GET", "POST"], allow_headers=["*"])


@dataclass(frozen=True)
class Api:
    """The routes that write."""

    service: ModelService
    seconds: float

    async def completions(self, request: Request) -> Any:
        """POST /v1/completions."""
        return await self._generate(request, chat=False)

    async def chat(self, request: Request) -> Any:
        """POST /v1/chat/completions."""
        return await self._generate(request, chat=True)

    async def _generate(self, request: Request, chat: bool) -> Any:
        deadline = asyncio.get_running_loop().time() + self.seconds
        try:
            async with asyncio.timeout_at(deadline):
                asked = await self.service.read(await request.body(), chat)
                if not asked.stream:
                    return reply(await self.service.answer(asked))
        except TimeoutError:
            raise self._too_late() from None
        return EventStream(self._events(asked, deadline))

    async def _events(self, asked: GenerationRequest, deadline: float) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of a streamed reply; an error after the beginning is one of them."""
        async with aclosing(self.service.stream(asked)) as stream:
            try:
                while True:
                    async with asyncio.timeout_at(deadline):
                        chunk = await anext(stream, None)
                    if chunk is None:
                        return
                    yield chunk
            except TimeoutError:
                yield self._too_late().as_dict()
            except Exception as fault:
                yield as_request_error(fault).as_dict()

    def _too_late(self) -> RequestError:
        return RequestError(f"not done within {self.seconds:g} s; ask for fewer or shorter completions", None, 504)


class EventStream:
    """A reply of server-sent events, in OpenAI's form; whoever stops sending it closes its source (final)."""

    def __init__(self, chunks: AsyncGenerator[dict[str, Any]]) -> None:
        self.chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, each as soon as it is there."""
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(self.chunks):
            async for chunk in self.chunks:
                event = b"data: " + to_json(chunk) + b"\n\n"
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def reply(content: dict[str, Any]) -> Response:
    """JSON."""
    return Response(to_json(content), media_type="application/json")


def as_request_error(fault: Exception) -> RequestError:
    """What a client is told of a failure."""
    if isinstance(fault, RequestError):
        return fault
    if isinstance(fault, OperantError):
        return RequestError(fault.cause, None, 400 if isinstance(fault, UsageError) else 503)
    return RequestError(f"{type(fault).__name__}: {fault}", None, 500)


async def _refuse(request: Request, fault: Exception) -> App:
    problem = as_request_error(fault)
    if isinstance(fault, HTTPException):
        where = f"{request.method} {request.url.path[:100]}"
        problem = RequestError(f"there is nothing at {where}", None, fault.status_code)

    async def response(scope: Scope, receive: Receive, send: Send) -> None:
        await refuse(scope, send, problem)

    return response
