"""The app, really started, and asked under names that are not its own (DNS rebinding)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from operant.app import server

# Not imported to find out: that takes seconds of every collection.
ABSENT = [package for package in ("streamlit", "plotly") if find_spec(package) is None]
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=f"not installed: {', '.join(ABSENT)}")

HANDSHAKE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    words = ["operant", "app", str(tmp_path_factory.mktemp("runs")), "--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", *words, "--allow-host", "lab.example.org"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"}\n"):
            said += process.stdout.readline()
        url = json.loads(said)["url"]
        assert server.wait_until_ready(url, process)
        yield int(url.rpartition(":")[2])
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stdout.close()


def status(port: int, path: str, host: str, headers: str = "") -> int:
    """The status of a raw request, so that every header is what the test says."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode())
        return int(wire.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(
    ("name", "page", "socket"),
    [("127.0.0.1", 200, 101), ("localhost", 200, 101), ("lab.example.org", 200, 101), ("rebound.example", 403, 403)],
)
def test_only_names_of_ours_are_answered_whatever_the_origin_says(port: int, name: str, page: int, socket: int) -> None:
    host = f"{name}:{port}"
    assert status(port, "/", host) == page
    assert status(port, "/_stcore/health", host) == page
    assert status(port, "/_stcore/stream", host, f"Origin: http://{host}\r\n{HANDSHAKE}") == socket


def test_a_page_of_another_origin_opens_no_socket(port: int) -> None:
    own = f"127.0.0.1:{port}"
    assert status(port, "/_stcore/stream", own, f"Origin: http://rebound.example\r\n{HANDSHAKE}") == 403
    assert status(port, "/_stcore/stream", own, f"Origin: null\r\n{HANDSHAKE}") == 403


def test_a_name_with_a_port_is_no_host_name(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "operant", "app", str(tmp_path), "--no-browser", "--allow-host", "lab:80"]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (told.returncode, told.stderr.splitlines()[0]) == (2, "'lab:80' is no host name")
