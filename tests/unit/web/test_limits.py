"""A real server with a small application behind the guard: limits on size, time and number, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

pytest.importorskip("uvicorn")

from operant.web import server as web_server
from operant.web.access import Access
from operant.web.guard import Guard, Limits, Message, Receive, Scope, Send
from operant.web.server import WebServer

HEAD = "Host: localhost\r\n"


class Echo:
    """Answers with the size of the body; `/wait` waits until it is cancelled, `/fail` fails."""

    def __init__(self) -> None:
        self.waiting, self.cancelled = threading.Event(), threading.Event()
        self.asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        body = (await receive())["body"]
        if scope["path"] == "/fail":
            raise ArithmeticError("out of luck")
        if scope["path"] == "/wait":
            self.waiting.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        start: Message = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]}
        await send(start)
        await send({"type": "http.response.body", "body": f"{len(body):8d}".encode()})


@contextmanager
def echoing(limits: Limits | None = None, **wishes: int) -> Iterator[tuple[Echo, int]]:
    app, server = Echo(), WebServer("127.0.0.1", 0, **wishes)
    thread = threading.Thread(target=server.run, args=(Guard(app, Access(), limits),))
    thread.start()
    try:
        yield app, server.port
    finally:
        server.stop()
        thread.join()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        yield wire


def answer(wire: socket.socket) -> tuple[int, bytes]:
    """Status and body of one reply whose length is told; (0, b"") where the connection was closed instead."""
    found = b""
    while b"\r\n\r\n" not in found:
        chunk = wire.recv(4096)
        if not chunk:
            return 0, b""
        found += chunk
    head, _, body = found.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
    while len(body) < length:
        body += wire.recv(4096)
    return int(head.split()[1]), body


def asked(port: int, data: bytes) -> tuple[int, bytes]:
    with connected(port) as wire:
        wire.sendall(data)
        return answer(wire)


def post(path: str, body: bytes, headers: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\n{HEAD}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_body_of_the_limit_is_read_and_a_larger_one_is_refused_before_it_comes() -> None:
    with echoing(Limits(body_bytes=1000)) as (app, port):
        assert asked(port, post("/", b"x" * 1000)) == (200, b"    1000")
        told = f"POST / HTTP/1.1\r\n{HEAD}Content-Length: 1001\r\n\r\n".encode()  # and not one byte of it
        status, body = asked(port, told)
        assert (status, json.loads(body)["error"]["code"]) == (413, 413)
        assert app.asked == 1


def test_a_body_in_chunks_is_refused_where_it_passes_the_limit() -> None:
    with echoing(Limits(body_bytes=1000)) as (app, port), connected(port) as wire:
        wire.sendall(f"POST / HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        wire.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")  # the end never comes
        assert answer(wire)[0] == 413
        assert not app.asked


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    with echoing(Limits(body_seconds=0.2)) as (app, port), connected(port) as wire:
        wire.sendall(f"POST / HTTP/1.1\r\n{HEAD}Content-Length: 9\r\n\r\nx".encode())
        assert answer(wire)[0] == 408
        assert not app.asked


def test_bodies_share_a_limit() -> None:
    with echoing(Limits(body_bytes=600, all_bytes=1000)) as (app, port), connected(port) as other:
        other.sendall(post("/wait", b"x" * 600))
        assert app.waiting.wait(30)
        assert asked(port, post("/", b"x" * 600))[0] == 503
        assert asked(port, post("/", b"x" * 400))[0] == 200


def test_so_many_requests_at_once_and_no_more() -> None:
    with echoing(Limits(requests=1)) as (app, port):
        with connected(port) as other:
            other.sendall(post("/wait", b""))
            assert app.waiting.wait(30)
            status, body = asked(port, post("/", b""))
            assert (status, json.loads(body)["error"]["type"]) == (503, "server_error")
        assert app.cancelled.wait(30)
        assert asked(port, post("/", b""))[0] == 200


def test_a_client_that_leaves_ends_the_work() -> None:
    with echoing() as (app, port):
        with connected(port) as wire:
            wire.sendall(post("/wait", b"{}"))
            assert app.waiting.wait(30)
            assert not app.cancelled.is_set()
        assert app.cancelled.wait(30)


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", f"GET / HTTP/1.1\r\n{HEAD}".encode()])
def test_a_client_that_does_not_go_on_is_given_up(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "PATIENCE_SECONDS", 0.1)
    with echoing() as (_, port), connected(port) as wire:
        wire.sendall(sent)
        with suppress(ConnectionResetError):
            assert wire.recv(1) == b""


def test_a_client_that_never_reads_its_reply_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "PATIENCE_SECONDS", 0.2)
    ended = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        finally:
            ended.set()

    server = WebServer("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=(Guard(endless, Access()),))
    thread.start()
    with connected(server.port) as wire:
        wire.sendall(post("/", b""))
        assert ended.wait(30)
    server.stop()
    thread.join()


def test_so_many_connections_and_no_more() -> None:
    with echoing(connections=2) as (_, port), connected(port) as first, connected(port) as second:
        for wire in (first, second):
            wire.sendall(post("/", b""))
            assert answer(wire)[0] == 200
        with connected(port) as third, suppress(ConnectionError):
            third.sendall(post("/", b""))
            assert answer(third) == (0, b"")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # without a Host
        (f"GET / HTTP/1.1\r\n{HEAD}X: {'y' * 70_000}\r\n\r\n".encode(), 431),
        (f"GET /{'z' * 9000} HTTP/1.1\r\n{HEAD}\r\n".encode(), 414),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        (f"POST / HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(), 400),
        (f"POST / HTTP/1.1\r\n{HEAD}Content-Length: -5\r\n\r\n".encode(), 400),
    ],
)
def test_what_is_no_request_of_ours_is_told_so_in_the_one_form(data: bytes, status: int) -> None:
    with echoing() as (app, port):
        found, body = asked(port, data)
        assert (found, json.loads(body)["error"]["code"]) == (status, status)
        assert not app.asked


def test_a_failure_is_one_line_and_the_next_request_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    with echoing() as (_, port):
        status, body = asked(port, post("/fail", b""))
        assert (status, json.loads(body)["error"]["message"]) == (500, "ArithmeticError: out of luck")
        assert asked(port, post("/", b"x"))[0] == 200
    assert capfd.readouterr().err == "POST '/fail': ArithmeticError: out of luck\n"


def test_a_refused_body_that_still_comes_does_not_spoil_the_connection() -> None:
    with echoing(Limits(body_bytes=10)) as (_, port), connected(port) as wire:
        wire.sendall(post("/", b"x" * 300_000))
        assert answer(wire)[0] == 413
        wire.sendall(post("/", b"x"))
        assert answer(wire) == (200, b"       1")


def test_a_client_that_sends_all_before_it_reads_still_gets_its_refusal() -> None:
    with echoing(Limits(body_bytes=10)) as (_, port):
        body = b"x" * 20_000_000
        for headers in ("", "Connection: close\r\n"):
            assert asked(port, post("/", body, headers))[0] == 413
