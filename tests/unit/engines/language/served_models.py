"""A real server of a small model on a port of its own, and a client that shows what comes over the wire."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from operant.engines.language.policy.model import Policy
from operant.engines.language.serving.api import build_app
from operant.engines.language.serving.service import ModelService
from operant.web.access import Access
from operant.web.guard import Limits
from operant.web.server import WebServer
from tests.unit.engines.language.small_models import random_policy

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'][0] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[a]{% endif %}"
)


def talking_policy(kind: str = "llama") -> Policy:
    """A small random model that has a chat template."""
    policy = random_policy(kind)
    policy.tokenizer.chat_template = TEMPLATE
    return replace(policy, has_chat_template=True)


@dataclass(frozen=True)
class Served:
    """A server that answers, and the service behind it."""

    url: str
    service: ModelService
    server: WebServer


@contextmanager
def serving(
    policy: Policy,
    access: Access | None = None,
    limits: Limits | None = None,
    seconds: float = 60.0,
    **wishes: Any,
) -> Iterator[Served]:
    """A server that answers until the block ends."""
    server = WebServer("127.0.0.1", 0)
    service = ModelService(policy, "small", **wishes)
    thread = threading.Thread(target=server.run, args=(build_app(service, access, limits, seconds),))
    thread.start()
    try:
        yield Served(f"{server.url}/v1", service, server)
    finally:
        server.stop()
        thread.join()
        service.close()


def fetch(url: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of a request: GET without a body, POST with one."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data), timeout=60) as reply:
            return reply.status, json.load(reply)
    except HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def events(url: str, body: dict[str, Any]) -> list[Any]:
    """The pieces of a streamed reply; the mark of its end must be there."""
    with urlopen(Request(url, json.dumps(body | {"stream": True}).encode()), timeout=60) as reply:
        assert reply.headers["Content-Type"] == "text/event-stream"
        lines = [line.decode().removeprefix("data: ").strip() for line in reply if line.strip()]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]
