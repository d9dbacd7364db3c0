"""A generator over HTTP: the same completions as at home, and servers that cannot be used are refused in words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.http_client import Client
from operant.engines.language.generation.remote_generator import RemoteGenerator
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.errors import RunError, UsageError
from tests.unit.engines.language.served_models import serving
from tests.unit.engines.language.small_models import random_policy

PROMPTS = [
    Prompt((5, 6, 7), 8),
    Prompt((9, 8), 20, ("ab", "q")),
    Prompt((5, 6, 7, 8), 8),
    Prompt((40, 41), 20, ("ab", "q")),
]


@contextmanager
def other_server(choice: dict[str, Any], broken: int = 0) -> Iterator[str]:
    """A server that answers every completion with `choice`, after `broken` failures."""
    left = [broken]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": "other"}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            left[0] -= 1
            self._send(503 if left[0] >= 0 else 200, {"choices": [choice]})

        def _send(self, status: int, body: dict[str, Any]) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("sampling", [Sampling(3, 0.8, 0.9, 40, seed=5), Sampling(1, 0.0)])
def test_completions_are_those_of_the_built_in_generator(sampling: Sampling) -> None:
    policy = random_policy("llama")
    with serving(random_policy("llama")) as server:
        far = RemoteGenerator(policy, server.url).generate(PROMPTS, sampling)
    near = TorchGenerator(policy).generate(PROMPTS, sampling)
    for row, same in zip(far, near, strict=True):
        for one, other in zip(row, same, strict=True):
            assert (one.tokens, one.text, one.finish) == (other.tokens, other.text, other.finish)
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_the_server_follows_the_policy_that_learns() -> None:
    policy = random_policy("llama", seed=1)
    with serving(random_policy("llama"), allow_load=True) as server:
        generator = RemoteGenerator(policy, server.url.removesuffix("/v1"))
        generator.load({}, 4)
        assert generator.generate(PROMPTS, Sampling(2))[0][0].version == 4
        with_own = TorchGenerator(policy).generate(PROMPTS, Sampling(2))
        assert [row[0].tokens for row in generator.generate(PROMPTS, Sampling(2))] == [
            row[0].tokens for row in with_own
        ]
        changed = {name: value + 0.1 for name, value in policy.model.state_dict().items()}
        generator.load(changed, 5)
        again = generator.generate(PROMPTS, Sampling(2))
        generator.close()
    assert {one.version for row in again for one in row} == {5}
    assert [row[0].tokens for row in again] != [row[0].tokens for row in with_own]


def test_a_server_that_takes_no_weights_is_refused_for_learning() -> None:
    with serving(random_policy("llama")) as server:
        generator = RemoteGenerator(random_policy("llama"), server.url)
        with pytest.raises(UsageError, match="takes no new weights") as refusal:
            generator.load({}, 1)
    assert server.url in str(refusal.value)


def test_a_server_without_token_ids_is_refused() -> None:
    with (
        other_server({"index": 0, "text": "hm", "logprobs": {"token_logprobs": [-1.0]}}) as url,
        pytest.raises(UsageError, match="does not give token ids"),
    ):
        RemoteGenerator(random_policy("llama"), url)


def test_a_server_with_other_tokens_is_refused() -> None:
    choice = {"index": 0, "token_ids": [1], "prompt_token_ids": [4, 5], "logprobs": {"token_logprobs": [-1.0]}}
    with other_server(choice) as url, pytest.raises(UsageError, match="other has other tokens than llama"):
        RemoteGenerator(random_policy("llama"), url)


def test_a_failure_that_passes_is_tried_again_and_one_that_stays_names_the_server() -> None:
    with other_server({"index": 0}, broken=2) as url:
        assert Client(url, pauses=(0.01, 0.01)).post("/completions", {})["choices"] == [{"index": 0}]
    with other_server({}, broken=9) as url, pytest.raises(RunError, match=f"{url}/v1: the server refuses: 503"):
        Client(url, pauses=(0.01,)).post("/completions", {})


def test_a_server_that_dies_is_named() -> None:
    with serving(random_policy("llama")) as server:
        generator = RemoteGenerator(random_policy("llama"), server.url)
    generator.client.pauses = (0.01, 0.01)
    with pytest.raises(RunError, match=f"{server.url}: the server does not answer, asked 3 times"):
        generator.generate(PROMPTS, Sampling())


def test_an_address_is_no_path() -> None:
    with pytest.raises(UsageError, match="is no address"):
        Client("localhost:8000")
