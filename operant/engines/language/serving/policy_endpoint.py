"""The policy endpoint: where environments that drive their rollouts themselves ask the policy, in OpenAI's words.

Every group of rollouts under way has an address of its own. What is asked waits here for the one thread that has the
generator, so that those who ask together are answered together. Every call is kept as it was made, in tokens: training
uses those, never text made into tokens again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from operant.engines.language.generation.generator import Completion, Prompt, Step
from operant.engines.language.generation.transcript import continued_tokens
from operant.engines.language.policy.chat_template import Template, encode
from operant.engines.language.policy.model import Policy
from operant.engines.language.serving.api import guarded, reply
from operant.engines.language.serving.requests import CONTEXT, ChatFields, chat_text, read_fields, read_json
from operant.engines.language.serving.responses import ResponseEncoder, message
from operant.web.access import Access, RequestError
from operant.web.guard import Limits
from operant.web.server import WebServer

POLL_SECONDS = 0.05
QUIET_SECONDS = 0.01
"""After so long without another call, those that came are answered."""
GATHER_SECONDS = 0.25
MOST_STEPS = 1 << 20
MOST_CALLS = 1 << 14
MODEL = "policy"


@dataclass
class Call:
    """One call of the policy that waits for its completion."""

    prompt: Prompt
    answer: Future[Completion] = field(default_factory=Future)


@dataclass
class Conversation:
    """The calls of one rollout; `number` tells those of a round apart, in a group by the order of their first calls."""

    number: int
    steps: list[Step] = field(default_factory=list)
    asked: str = ""


class GroupCalls:
    """A group under way and the conversations in it, numbered from `first` on (final).

    A completion has at most `max_tokens`.
    """

    def __init__(self, first: int, max_tokens: int) -> None:
        self.first = first
        self.max_tokens = max_tokens
        self._lock = threading.Lock()
        self._held: dict[str, Conversation] = {}

    def conversation(self, session: str) -> Conversation:
        """The conversation of a session, which begins with its first call."""
        with self._lock:
            return self._held.setdefault(session, Conversation(self.first + len(self._held)))

    def steps(self, session: str) -> tuple[Step, ...]:
        """What a session asked and was answered."""
        held = self._held.get(session)
        return tuple(held.steps) if held is not None else ()

    def number(self, session: str) -> int:
        """The number of a session; those that never asked come last."""
        held = self._held.get(session)
        return held.number if held is not None else self.first + len(self._held)


class PolicyEndpoint:
    """Listens at an address of this machine and hands calls over (final). A block to be within.

    A tokenizer serves one thread at a time, so that of `policy` must not be the generator's.
    """

    def __init__(self, policy: Policy, template: Template) -> None:
        self.policy = policy
        self.template: Template = template
        self.groups: dict[int, GroupCalls] = {}
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._encoder = ResponseEncoder(policy, MODEL)
        self._text_thread = ThreadPoolExecutor(1, "endpoint-texts")
        self._server = WebServer("127.0.0.1", 0, connections=MOST_CALLS)
        routes = [
            Route("/groups/{group:int}/v1/models", self._models),
            Route("/groups/{group:int}/v1/chat/completions", self._chat, methods=["POST"]),
        ]
        app = guarded(routes, Access(), Limits(requests=MOST_CALLS))
        self._thread = threading.Thread(target=self._server.run, args=(app,), name="endpoint", daemon=True)
        self._thread.start()

    def __enter__(self) -> PolicyEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_group(self, group: int, first: int, max_tokens: int) -> str:
        """Let a group in, whose rollouts are numbered from `first` on; where they find the policy."""
        self.groups[group] = GroupCalls(first, max_tokens)
        return f"{self._server.url}/groups/{group}/v1"

    def calls(self, expected: int) -> list[Call]:
        """The calls that wait: all of those `expected`, or those that came shortly one after the other; maybe none."""
        try:
            found = [self._calls.get(timeout=POLL_SECONDS)]
        except Empty:
            return []
        until = time.monotonic() + GATHER_SECONDS
        while len(found) < expected and time.monotonic() < until:
            try:
                found.append(self._calls.get(timeout=QUIET_SECONDS))
            except Empty:
                break
        return [call for call in found if call.answer.set_running_or_notify_cancel()]

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.stop()
        while self._thread.is_alive():
            try:
                call = self._calls.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if call.answer.set_running_or_notify_cancel():
                call.answer.set_exception(RequestError("the policy is gone", None, 503))
        self._text_thread.shutdown()

    async def _models(self, _: Request) -> Response:
        return reply({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "operant"}]})

    async def _chat(self, request: Request) -> Response:
        """The reply to a call, once the generator has written it; the call is kept if the client is still there."""
        body, number = await request.body(), int(request.path_params["group"])
        group = self.groups.get(number)
        if group is None:
            raise RequestError(f"no group {number} is under way", None, 404)
        conversation = group.conversation(request.headers.get("X-Session-ID", ""))
        loop = asyncio.get_running_loop()
        fields, asked, prompt = await loop.run_in_executor(
            self._text_thread, lambda: self._read(body, conversation, group.max_tokens)
        )
        call = Call(prompt)
        self._calls.put(call)
        completion = await asyncio.wrap_future(call.answer)
        conversation.asked = asked
        conversation.steps.append(Step(prompt.tokens, completion))
        return reply(self._reply(prompt.tokens, completion, bool(fields.offered)))

    def _read(self, body: bytes, conversation: Conversation, most: int) -> tuple[ChatFields, str, Prompt]:
        fields = read_fields(read_json(body), chat=True)
        if fields.n != 1 or fields.stream:
            wrong = "n" if fields.n != 1 else "stream"
            raise RequestError("one completion at a time, and whole: n 1, stream false", wrong)
        asked = chat_text(fields, self.policy, self.template)
        return fields, asked, self._prompt(conversation, self._tokens(conversation, asked), fields, most)

    def _prompt(self, conversation: Conversation, tokens: tuple[int, ...], fields: ChatFields, most: int) -> Prompt:
        room = self.policy.context - len(tokens)
        if room < 1:
            raise RequestError(CONTEXT.format(context=self.policy.context, length=len(tokens)), "messages")
        asked = [each for each in (fields.max_completion_tokens, fields.max_tokens) if each]
        # Rollouts of a group begin with the same words, and must not all go on alike.
        salt = 1 + conversation.number * MOST_STEPS + len(conversation.steps)
        return Prompt(tokens, min([room, most, *asked]), fields.stops, salt)

    def _tokens(self, conversation: Conversation, asked: str) -> tuple[int, ...]:
        """The tokens of what is asked: those of the last call and its completion gone on, where the words go on."""
        fresh = encode(asked, self.policy)
        if not conversation.steps:
            return fresh
        last = conversation.steps[-1]
        said = conversation.asked + last.completion.text
        if not asked.startswith(said):
            return fresh
        return continued_tokens(self.policy, last.prompt, last.completion, asked[len(said) :])

    def _reply(self, prompt: tuple[int, ...], completion: Completion, tools: bool) -> dict[str, Any]:
        """A chat reply of one whole completion; its tokens are kept here."""
        said = message(completion.text, tools)
        ended = "length" if completion.finish == "length" else "tool_calls" if "tool_calls" in said else "stop"
        counts = {"prompt_tokens": len(prompt), "completion_tokens": len(completion.tokens)}
        usage = {**counts, "total_tokens": sum(counts.values())}
        choice = {"index": 0, "message": said, "finish_reason": ended}
        return {**self._encoder.head(chat=True), "choices": [choice], "usage": usage}
