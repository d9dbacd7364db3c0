"""Models that carry out directions: here, and behind a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

pytest.importorskip("torch")

from operant.engines.language.policy.model import load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.engines.language.rollouts.executors import ModelExecutor, ServerExecutor, attach_executors
from operant.envs.research.directed import DirectedResearch
from operant.envs.text.dialogue import Message
from operant.envs.text.task import Problem
from operant.errors import RunError, UsageError

PROBLEM = Problem("t/train/0", "t", "ask", None, max_tokens=12)
SAID = [Message("system", "rules"), Message("user", "task"), Message("user", "direction")]


def test_a_model_here_writes_by_its_seed_until_its_context_is_full() -> None:
    executor = ModelExecutor(load_policy("tiny", tiny=TinySizes(1, 32, 4, 64)), 0.9)
    assert executor.reply(PROBLEM, SAID, 3) == executor.reply(PROBLEM, SAID, 3)
    assert executor.reply(PROBLEM, SAID, 3) != executor.reply(PROBLEM, SAID, 4)
    assert executor.reply(PROBLEM, [Message("user", "x" * 62)], 3) is None


def test_tasks_that_name_the_same_model_share_it() -> None:
    tasks = [DirectedResearch(executor="tiny", nodes=nodes) for nodes in (1, 2)]
    attach_executors(tasks, load_policy("tiny", tiny=TinySizes(1, 32, 4, 64)))
    assert isinstance(tasks[0].player, ModelExecutor)
    assert tasks[0].player is tasks[1].player


class Chat(BaseHTTPRequestHandler):
    asked: list[dict[str, Any]]
    reply: dict[str, Any]

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(self.reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    Chat.asked, Chat.reply = [], {"choices": [{"message": {"content": "ls"}}]}
    with HTTPServer(("127.0.0.1", 0), Chat) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def test_a_server_is_asked_for_chat_completions(server: HTTPServer) -> None:
    executor = ServerExecutor(f"http://127.0.0.1:{server.server_port}/v1/", "big", 0.5)
    assert executor.reply(PROBLEM, SAID, 7) == "ls"
    asked = Chat.asked[-1]
    assert (asked["model"], asked["temperature"], asked["max_tokens"], asked["seed"]) == ("big", 0.5, 12, 7)
    assert asked["messages"] == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "task\ndirection"},
    ]
    Chat.reply = {"error": "none"}
    with pytest.raises(RunError, match="holds no message"):
        executor.reply(PROBLEM, SAID, 7)


def test_a_server_that_is_not_there_is_told_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operant.engines.language.generation.http_client.Client._patiently", _refused)
    with pytest.raises(UsageError, match="the executor cannot be asked: no") as refused:
        ServerExecutor("http://127.0.0.1:9", "big", 0.5)
    assert "env.text.arguments.executor=MODEL" in (refused.value.remedy or "")


def _refused(*_: object) -> None:
    raise RunError("no")
