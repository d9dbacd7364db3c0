"""Seeded requests of every kind that a server on the network meets, as bytes on a socket, and what comes back."""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rng = random.Random
WAIT_SECONDS = 60.0
CLOSED = 0
"""The status of a request that was cut short, by the client or because it was no HTTP."""


@dataclass(frozen=True)
class Sent:
    """One request, and whether its client leaves without waiting."""

    kind: str
    data: bytes
    leaves: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a request ended."""

    kind: str
    status: int
    seconds: float
    body: bytes


NUMBERS = (0, 1, -1, 0.5, -0.0, 2, 1e-320, 5e-324, 1e-45, 1e-7, 100, 101, 1e308, 2**31, 2**63, -(2**63), 10**40, True)
RAW_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000, "00", "0x1", "1.", "--1")
TEXTS = ("", "a", "ab", "é", "\u0000", "😀", "x" * 50, "x" * 5000, "[INST]", "\r\n", "{{ 7*7 }}", "</s>")
VALUES = (None, True, False, [], {}, [[]], [None], "", "a", 0, 1, -1, 1.5, [1, "a"], {"a": {"b": []}}, ["a"] * 100)
FIELDS = (
    "model", "n", "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "stream", "stream_options", "echo",
    "return_token_ids", "user", "frequency_penalty", "presence_penalty", "logprobs", "best_of", "messages", "prompt",
    "top_logprobs", "max_completion_tokens", "tools", "tool_choice", "parallel_tool_calls", "unheard_of",
)  # fmt: skip
PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/models", "/health", "/v1/load", "/", "/v1", "/nowhere")
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW", "post")


def plain_body(rng: Rng, chat: bool) -> dict[str, Any]:
    """A request that can be answered, and quickly."""
    body: dict[str, Any] = {"max_tokens": rng.randint(1, 8), "seed": rng.randint(0, 9)}
    if chat:
        body["messages"] = [{"role": "user", "content": rng.choice(("hi", "a", "é 😀"))}]
    else:
        body["prompt"] = rng.choice(("ab", "é", [5, 6], ["a", "b"], [[5], [6]]))
    if rng.random() < 0.3:
        body["stream"] = True
    elif rng.random() < 0.3:
        body["logprobs"] = True if chat else rng.randint(0, 3)
    return body


def wire(
    body: bytes, path: str = "/v1/completions", method: str = "POST", headers: str = "", host: str = "localhost"
) -> bytes:
    """A request in bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode("utf-8", "surrogateescape") + body


def _dump(body: Any) -> bytes:
    return json.dumps(body).encode()


def _plain(rng: Rng) -> Sent:
    chat = rng.random() < 0.5
    return Sent("plain", wire(_dump(plain_body(rng, chat)), PATHS[chat]))


def _field(rng: Rng) -> Sent:
    chat = rng.random() < 0.5
    body = plain_body(rng, chat)
    for _ in range(rng.randint(1, 3)):
        body[rng.choice(FIELDS)] = rng.choice(rng.choice((NUMBERS, TEXTS, VALUES)))
    return Sent("field", wire(_dump(body), PATHS[chat]))


def _number(rng: Rng) -> Sent:
    raw = f'{{"prompt": "a", "max_tokens": 2, "{rng.choice(FIELDS[1:8])}": {rng.choice(RAW_NUMBERS)}}}'
    return Sent("number", wire(raw.encode()))


def _text(rng: Rng) -> Sent:
    bad = rng.choice((b"\\ud800", b"\\udc00\\ud800", b"\xff\xfe", b"\xed\xa0\x80", b"\\u12", b"\\x", b"\n"))
    where = rng.choice((b'{"prompt": "%s"}', b'{"prompt": "a", "stop": "%s"}', b'{"%s": 1}', b'{"prompt": ["%s"]}'))
    return Sent("text", wire(where % bad))


def _deep(rng: Rng) -> Sent:
    depth = rng.choice((30, 150, 250, 1000, 50_000, 500_000))
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
    nested = opening * depth + "1" + closing * (depth if rng.random() < 0.7 else 0)
    raw = rng.choice(('{"prompt": %s}', '{"prompt": "a", "tools": [%s]}', "%s"))
    tool = {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": nested}}]}]}
    if rng.random() < 0.3:
        return Sent("deep", wire(_dump({**tool, "max_tokens": 1}), "/v1/chat/completions"))
    return Sent("deep", wire((raw % nested).encode()))


def _message(rng: Rng) -> Sent:
    turns = [
        {rng.choice(("role", "content", "tool_calls", "name")): rng.choice((*VALUES, *TEXTS)) for _ in range(3)}
        for _ in range(rng.randint(0, 4))
    ]
    body = {"messages": turns, "max_tokens": 2, "tools": rng.choice(([], [{}], [{"type": "function"}], VALUES[:4]))}
    return Sent("message", wire(_dump(body), "/v1/chat/completions"))


def _large(rng: Rng) -> Sent:
    size = rng.choice((10_000, 200_000, 2_000_000))
    body = rng.choice(
        (
            {"prompt": "x" * size},
            {"prompt": "one two " * (size // 8)},
            {"prompt": [5] * size},
            {"prompt": ["a"] * size},
            {"prompt": "a", "n": 4096, "max_tokens": 50},
            {"prompt": ["a"] * 1000, "n": 1000},
            {"prompt": "a", "stop": ["b"] * size},
            {"prompt": "ab", "echo": True, "logprobs": 100, "n": 20},
        )
    )
    return Sent("large", wire(_dump(body), "/v1/completions"), leaves=body.get("n") == 4096)


def _oversized(rng: Rng) -> Sent:
    if rng.random() < 0.5:
        length = rng.choice((10**7, 10**12, 10**19, 10**30))
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        return Sent("oversized", head.encode() + b"x" * 1000)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Sent("oversized", head + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 160 + b"0\r\n\r\n")


def _chunked(rng: Rng) -> Sent:
    head = (
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = _dump(plain_body(rng, False))
    good = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return Sent(
        "chunked", head + rng.choice((good, b"zz\r\n", b"-1\r\n\r\n", b"5\r\nabc", good[:-7] + b"Q", b"")), True
    )


def _garbage(rng: Rng) -> Sent:
    noise = bytes(rng.randrange(256) for _ in range(rng.randint(1, 400)))
    lines = (
        b"GET /\r\n\r\n",
        b"\r\n\r\n",
        b"GET  / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\n",
    )
    return Sent("garbage", rng.choice((noise + b"\r\n\r\n", wire(noise), rng.choice(lines))), True)


def _head(rng: Rng) -> Sent:
    headers = rng.choice(
        (
            "Origin: http://elsewhere.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
            "Authorization: Bearer \xff\r\n",
            f"X-Long: {'y' * 70_000}\r\n",
            "X-Many: 1\r\n" * 3000,
            "Content-Length: 5\r\n",
            "Expect: 100-continue\r\n",
            "Upgrade: websocket\r\nConnection: Upgrade\r\n",
            "Upgrade: h2c\r\n",
        )
    )
    host = rng.choice(("localhost", "127.0.0.1:80", "[::1]", "elsewhere.example", "", "a b", "localhost@x", "[:", "é"))
    return Sent("head", wire(_dump(plain_body(rng, False)), headers=headers, host=host))


def _route(rng: Rng) -> Sent:
    path = rng.choice(
        (*PATHS, "/v1/" + "z" * 9000, "/%ff%00", "/..%2f..%2fetc/passwd", "//", "/health?" + "q" * 9000, "*")
    )
    return Sent("route", wire(b"{}", path, rng.choice(METHODS)))


def _cut(rng: Rng) -> Sent:
    chat = rng.random() < 0.5
    whole = wire(_dump(plain_body(rng, chat) | {"max_tokens": 40, "n": rng.choice((1, 64))}), PATHS[chat])
    return Sent("cut", whole[: rng.randint(1, len(whole))] if rng.random() < 0.5 else whole, True)


def _pipelined(rng: Rng) -> Sent:
    one = wire(_dump(plain_body(rng, False))).replace(b"Connection: close\r\n", b"")
    return Sent("pipelined", one * rng.randint(1, 4) + wire(b"", "/health", "GET"))


KINDS: tuple[tuple[int, Callable[[Rng], Sent]], ...] = (
    (4, _plain), (6, _field), (3, _number), (2, _text), (2, _deep), (3, _message), (1, _large), (1, _oversized),
    (2, _chunked), (2, _garbage), (3, _head), (2, _route), (2, _cut), (1, _pipelined),
)  # fmt: skip


def draw(seed: int) -> Sent:
    """The request of a seed."""
    rng = Rng(seed)
    (make,) = rng.choices([make for _, make in KINDS], [weight for weight, _ in KINDS])
    return make(rng)


def ask(port: int, sent: Sent, wait: float = WAIT_SECONDS) -> Outcome:
    """Send a request and read until the server closes; a client that leaves waits a moment and resets."""
    begun, found = time.monotonic(), b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=wait) as wire_:
            if sent.leaves:
                wire_.settimeout(0.02)
                wire_.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                wire_.sendall(sent.data)
            except TimeoutError:
                if not sent.leaves:
                    raise
            except OSError:
                pass  # the server has heard enough; what it said is there to be read
            found = wire_.recv(1 << 16) if sent.leaves else _reply(wire_)
    except TimeoutError:
        if not sent.leaves:
            return Outcome(sent.kind, -1, time.monotonic() - begun, found)
    except OSError:
        pass
    found = found.removeprefix(b"HTTP/1.1 100 \r\n\r\n").removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    status = int(found.split(None, 2)[1]) if found.startswith(b"HTTP/1.1 ") else CLOSED
    return Outcome(sent.kind, status, time.monotonic() - begun, found.partition(b"\r\n\r\n")[2])


def _reply(wire_: socket.socket) -> bytes:
    """All that comes; of a reply whose length is told, no more than that."""
    found = b""
    while chunk := wire_.recv(1 << 16):
        found += chunk
        head, _, body = found.partition(b"\r\n\r\n")
        told = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if body and told and len(body) >= int(told[0].split(b":")[1]):
            break
    return found
