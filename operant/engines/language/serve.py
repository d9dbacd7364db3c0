"""An OpenAI-compatible server over HTTP, on the standard library alone.

GET  /health  /v1/models
POST /v1/completions  /v1/chat/completions  /v1/load
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from operant.engines.language.queries import BadRequest
from operant.engines.language.service import Service
from operant.errors import OperantError, UsageError

MOST_BYTES = 1 << 28
IDLE_SECONDS = 600.0
"""A connection on which nothing comes for so long is closed."""

WRITERS = {"/v1/completions": False, "/v1/chat/completions": True}


class Server(ThreadingHTTPServer):
    """Listens; every connection has a thread, the model has one of its own (final).

    The port is taken at once, so that one in use is known before a model is loaded; `attend` then answers.
    """

    daemon_threads = True
    request_queue_size = 128

    service: Service

    def __init__(self, host: str, port: int, handler: type[Handler] | None = None) -> None:
        try:
            super().__init__((host, port), handler or Handler)
        except OSError as fault:
            raise _cannot_listen(fault, host, port) from None

    @property
    def url(self) -> str:
        """Where clients find the API."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def attend(self, service: Service) -> None:
        """Answer with `service` until `shutdown` is called or Ctrl-C is pressed; then close."""
        self.service = service
        try:
            self.serve_forever(poll_interval=0.1)
        finally:
            self.server_close()
            service.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else is told in one line."""
        fault = sys.exc_info()[1]
        if not isinstance(fault, ConnectionError | TimeoutError):
            print(f"request from {client_address[0]}: {type(fault).__name__}: {fault}", file=sys.stderr, flush=True)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    GETS: ClassVar[dict[str, str]] = {"/health": "health", "/v1/models": "models"}

    def do_GET(self) -> None:
        """Facts."""
        if self.path in self.GETS:
            self.reply(getattr(self.server.service, self.GETS[self.path])())
        else:
            self._refuse(BadRequest(f"there is nothing at GET {self.path}", None, self._absent()))

    def do_POST(self) -> None:
        """Work."""
        try:
            body = self._body()
            if self.path in WRITERS:
                self.write(body)
            elif self.path == "/v1/load":
                self.reply(self.server.service.load(body))
            else:
                raise BadRequest(f"there is nothing at POST {self.path}", None, self._absent())
        except BadRequest as problem:
            self._refuse(problem)
        except OperantError as problem:
            self._refuse(BadRequest(problem.cause))
        except ConnectionError:
            raise
        except Exception as fault:
            self._refuse(_defect(fault))

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: a rollout sends thousands."""

    def write(self, body: dict[str, Any]) -> None:
        """Answer a request for completions."""
        service = self.server.service
        query = service.query(body, WRITERS[self.path])
        if query.stream:
            self._stream(service.stream(query))
        else:
            self.reply(service.answer(query))

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            self.close_connection = True
            raise BadRequest(f"the request needs a Content-Length of at most {MOST_BYTES:,}", None, 411)
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as problem:
            raise BadRequest(f"the body is no JSON: {problem}") from None
        if not isinstance(body, dict):
            raise BadRequest("the body must be a JSON object")
        return body

    def _absent(self) -> int:
        """405 for a path that only takes the other method."""
        return 405 if self.path in (*WRITERS, *self.GETS, "/v1/load") else 404

    def _refuse(self, problem: BadRequest) -> None:
        self.reply(problem.as_dict(), problem.status)

    def reply(self, content: dict[str, Any], status: int = 200) -> None:
        """Send JSON."""
        data = json.dumps(content, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: Iterator[dict[str, Any]]) -> None:
        """Server-sent events; the end of the connection is the end of the body."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for piece in pieces:
                self._event(piece)
        except ConnectionError:
            raise
        except Exception as fault:
            self._event(_defect(fault).as_dict())
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, piece: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(piece, allow_nan=False).encode() + b"\n\n")
        self.wfile.flush()


def _defect(fault: Exception) -> BadRequest:
    """What a client is told of a failure of ours."""
    return BadRequest(f"{type(fault).__name__}: {fault}", None, 500)


def _cannot_listen(fault: OSError, host: str, port: int) -> UsageError:
    if fault.errno == errno.EADDRINUSE:
        return UsageError(f"port {port} of {host} is in use", remedy=f"--port {port + 1}")
    return UsageError(f"cannot listen at {host} port {port}: {fault.strerror or fault}", remedy="--host 127.0.0.1")
