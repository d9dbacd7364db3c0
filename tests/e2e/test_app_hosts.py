"""The app, really started, and asked under names that are not its own (DNS rebinding)."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.dashboard import served


class Reply(NamedTuple):
    status: int
    policy: str | None
    body: bytes


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with served(tmp_path_factory.mktemp("runs"), "--allow-host", "lab.example.org") as url:
        yield int(url.rpartition(":")[2])


def asked(port: int, path: str, host: str, method: str = "GET", **headers: str) -> Reply:
    """The reply to a request whose every header is what the test says."""
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    wire.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    body = b'{"runs": []}' if method == "POST" else b""
    sent = {"Host": host, "Content-Length": str(len(body)), **{key.replace("_", "-"): headers[key] for key in headers}}
    for key, value in sent.items():
        wire.putheader(key, value)
    wire.endheaders(body)
    answer = wire.getresponse()
    reply = Reply(answer.status, answer.headers["content-security-policy"], answer.read())
    wire.close()
    return reply


@pytest.mark.parametrize(
    ("name", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("lab.example.org", 200), ("rebound.example", 403)],
)
def test_only_names_of_ours_are_answered_whatever_the_origin_says(port: int, name: str, status: int) -> None:
    host = f"{name}:{port}"
    for path in ("/", "/health", "/api/runs", "/static/main.js"):
        assert asked(port, path, host).status == status
        assert asked(port, path, host, Origin=f"http://{host}").status == status


def test_a_page_of_another_origin_is_not_answered(port: int) -> None:
    own = f"127.0.0.1:{port}"
    for origin in ("http://rebound.example", "null"):
        assert asked(port, "/api/runs", own, Origin=origin).status == 403
        assert asked(port, "/api/chosen", own, "POST", Origin=origin).status == 403
    assert asked(port, "/static/main.js", own, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(port: int) -> None:
    policy = asked(port, "/", f"127.0.0.1:{port}").policy or ""
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/api/no"])
def test_no_address_leads_out_of_the_page(port: int, path: str) -> None:
    assert asked(port, path, f"127.0.0.1:{port}").status == 404


def test_nonsense_gets_one_line(port: int) -> None:
    own = f"127.0.0.1:{port}"
    for path in ("/api/run?run=../../etc", "/api/runs?since=x", "/api/episode"):
        reply = asked(port, path, own)
        assert reply.status == 400
        assert "\n" not in json.loads(reply.body)["error"]
    assert asked(port, "/api/series", own, "POST").status == 200


def test_a_name_with_a_port_is_no_host_name(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "operant", "app", str(tmp_path), "--no-browser", "--allow-host", "lab:80"]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (told.returncode, told.stderr.splitlines()[0]) == (2, "'lab:80' is no host name")


def test_ctrl_c_is_a_good_end(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "operant", "app", str(tmp_path), "--port", "0", "--no-browser"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    address = process.stdout.readline().decode().split(" at ")[1].split(";")[0]
    port = int(address.rpartition(":")[2])
    assert asked(port, "/health", f"127.0.0.1:{port}").status == 200
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (0, b"", b"")
