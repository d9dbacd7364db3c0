"""An HTTP server on uvicorn whose port is taken at once, and which gives up clients that do nothing."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from operant.errors import UsageError
from operant.web.access import RequestError
from operant.web.guard import HEADER_BYTES, App, to_json

PATIENCE_SECONDS = 15.0
"""A client that sent nothing new and took nothing for so long, twice in a row, is given up."""
GRACE_SECONDS = 5
"""How long requests that are being answered may go on once the server is asked to end."""


class WebServer:
    """Listens from the beginning, so that a port in use is known before a model is loaded (final)."""

    def __init__(self, host: str, port: int, *, connections: int = 512) -> None:
        self.host = host
        self.connections = connections
        self.socket = _listen(host, port)
        self._server: Server | None = None
        self._ended = threading.Event()

    @property
    def port(self) -> int:
        """The port that is listened at."""
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self, app: App) -> None:
        """Answer with `app` until `stop` is called, or, in the main thread, until Ctrl-C, which is raised again."""
        config = Config(
            app,
            loop="asyncio",
            http=_protocol(self.connections),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(PATIENCE_SECONDS),
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        self._server = server = Server(config)
        server.should_exit = self._ended.is_set()
        try:
            server.run([self.socket])
        finally:
            self.socket.close()

    def stop(self) -> None:
        """Let `run` return, once what is being answered is done or `GRACE_SECONDS` are over. Any thread may call it."""
        self._ended.set()
        if self._server is not None:
            self._server.should_exit = True


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, with limits on how many connections there are and how long a client may do nothing."""

    most = 512
    patience = PATIENCE_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Watch a new connection, or close it where there are too many."""
        super().connection_made(transport)
        self._seen: tuple[Any, int] | None = None
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._watch = self.loop.call_later(self.patience, self._look)

    def _look(self) -> None:
        """Give up a client that is waited for, and did nothing since the last look."""
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            return
        untaken = self.transport.get_write_buffer_size()
        answering = self.cycle is not None and not self.cycle.response_complete
        now = (self.cycle, untaken)
        if (untaken or not answering) and now == self._seen:
            self.transport.abort()
            return
        self._seen = now
        self._watch = self.loop.call_later(self.patience, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        super().connection_lost(exc)
        if hasattr(self, "_watch"):
            self._watch.cancel()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets an error, unless a reply is already on its way."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        data = to_json(RequestError(msg).as_dict())
        headers = [("content-type", "application/json"), ("content-length", str(len(data))), ("connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=data), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _protocol(connections: int) -> type[PatientProtocol]:
    return type("_Protocol", (PatientProtocol,), {"most": connections, "patience": PATIENCE_SECONDS})


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, number)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
        return listening
    except OSError as fault:
        if fault.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} of {host} is in use", remedy="--port 0    (any that is free)") from None
        raise UsageError(
            f"cannot listen at {host} port {port}: {fault.strerror or fault}", remedy="--host 127.0.0.1"
        ) from None
