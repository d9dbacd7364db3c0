"""An ASGI layer before an application: it lets in what may be asked, reads bodies within limits, and hears of clients
that leave."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from operant.web.access import Access, RequestError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MEBIBYTE = 1 << 20
TARGET_BYTES = 8192
HEADER_BYTES = 32 * 1024
DRAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Limits:
    """How much may be asked: of one body, and of all requests that are being answered together."""

    body_bytes: int = 8 * MEBIBYTE
    body_seconds: float = 60.0
    all_bytes: int = 64 * MEBIBYTE
    requests: int = 512


class ClientGone(Exception):
    """The client left before its request was complete."""


class Guard:
    """Stands before `app` (final).

    The application gets requests whose body is there in whole, and is cancelled when the client leaves. What it raises
    is reported in one line on standard error and answered with 500.
    """

    def __init__(self, app: App, access: Access, limits: Limits | None = None) -> None:
        self.app = app
        self.access = access
        self.limits = limits or Limits()
        self.open_requests = 0
        self.buffered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        try:
            self._check(scope)
        except RequestError as problem:
            return await refuse(scope, send, problem, receive)
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        self.open_requests += 1
        body = bytearray()
        try:
            await self._read(body, headers_of(scope), receive)
            return await self._pass_on(scope, bytes(body), receive, send)
        except RequestError as problem:
            return await refuse(scope, send, problem, receive)
        except ClientGone:
            return None
        finally:
            self.open_requests -= 1
            self.buffered -= len(body)

    def _check(self, scope: Scope) -> None:
        self.access.check(headers_of(scope), scope["path"])
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > TARGET_BYTES:
            raise RequestError(f"the address is longer than {TARGET_BYTES} bytes", None, 414)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
            raise RequestError(f"the headers are longer than {HEADER_BYTES} bytes", None, 431)
        if self.open_requests >= self.limits.requests:
            raise RequestError(f"{self.limits.requests} requests are being answered; try again", None, 503)

    async def _read(self, body: bytearray, headers: Mapping[str, str], receive: Receive) -> None:
        """Fill `body`; refuse one that is too large before it is read, and one that comes too slowly."""
        limits = self.limits
        announced = headers.get("content-length", "0")
        self._check_size(int(announced[:30]) if announced.isdecimal() else 0)
        try:
            async with asyncio.timeout(limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    self._check_size(len(body) + len(chunk))
                    if self.buffered + len(chunk) > limits.all_bytes:
                        raise RequestError("too many large requests are being answered; try again", None, 503)
                    body += chunk
                    self.buffered += len(chunk)
        except TimeoutError:
            raise RequestError(f"the body was not sent within {limits.body_seconds:g} s", None, 408) from None

    def _check_size(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise RequestError(f"the body is larger than {self.limits.body_bytes:,} bytes", None, 413)

    async def _pass_on(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the application until it is done, or until the client leaves."""
        gone = asyncio.ensure_future(receive())  # the body is read, so the next message is that the client left
        reply, unread = _Reply(send), [body]

        async def replay() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await asyncio.shield(gone)

        work = asyncio.ensure_future(self._run(scope, replay, reply))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if reply.complete:  # which the server reports as if the client had left
                await work
        finally:
            gone.cancel()
            work.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _run(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        try:
            await self.app(scope, receive, reply)
        except Exception as fault:
            print(f"{scope['method']} {scope['path']!a}: {type(fault).__name__}: {fault}", file=sys.stderr, flush=True)
            if not reply.begun:
                await refuse(scope, reply, RequestError(f"{type(fault).__name__}: {fault}", None, 500))


class _Reply:
    """Sends the messages of one reply and knows how far it is."""

    def __init__(self, send: Send) -> None:
        self.begun = self.complete = False
        self._send = send

    async def __call__(self, message: Message) -> None:
        self.begun = True
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)
        await asyncio.sleep(0)  # a client that left takes everything at once, and the loop must get to hear of it


async def refuse(scope: Scope, send: Send, problem: RequestError, unread: Receive | None = None) -> None:
    """Answer with an error; a WebSocket is closed before it is open.

    Of a body that is `unread` what still comes is thrown away for a while: many clients read only once they have sent
    all, and would find a closed connection instead of the answer.
    """
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008, "reason": problem.message})
    data = to_json(problem.as_dict())
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    if problem.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    if "expect" in headers_of(scope):  # the client waits for leave to send its body, and will not get it
        headers.append((b"connection", b"close"))
        unread = None
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": unread is not None})
    if unread is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while (await unread()).get("more_body", False):
                    pass
        await send({"type": "http.response.body"})
    return None


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by their names in small letters."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def to_json(content: Mapping[str, Any]) -> bytes:
    """JSON in ASCII, so that no text of a model, whatever is in it, can fail to be sent."""
    return json.dumps(content, allow_nan=False).encode()
