"""Where guests ask the policy: an OpenAI-compatible address for every group of rollouts under way.

What is asked waits here for the one thread that has the generator, so that guests which ask together are answered
together. Every call is kept as it was made, in tokens: training uses those, never text made into tokens again.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from operant.engines.language.completion import Completion, Prompt
from operant.engines.language.model import Policy
from operant.engines.language.prompts import Template, encode
from operant.engines.language.queries import BadRequest, ChatFields, read_aloud, read_fields, stops_of
from operant.engines.language.replies import reply_to_guest
from operant.engines.language.rollout import Step
from operant.engines.language.serve import Handler, Server
from operant.engines.language.transcript import gone_on

POLL_SECONDS = 0.05
QUIET_SECONDS = 0.01
"""After so long without another ask, those that came are answered."""
GATHER_SECONDS = 0.25
MOST_STEPS = 1 << 20
MODEL = "policy"
ADDRESS = re.compile(r"/groups/(\d+)(/v1/.*)")
NO_CONTEXT = "this model's maximum context length is {context} tokens, and the prompt has {length}"


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


class Room:
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


class Reception:
    """Listens at an address of this machine and hands calls over (final). A block to be within.

    A tokenizer serves one thread at a time, so that of `policy` must not be the generator's; connections take turns.
    """

    def __init__(self, policy: Policy, template: Template) -> None:
        self.policy = policy
        self.template: Template = template
        self.rooms: dict[int, Room] = {}
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._reading = threading.Lock()
        self._server = _Entrance(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="reception", daemon=True)
        self._thread.start()

    def __enter__(self) -> Reception:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_room(self, group: int, first: int, max_tokens: int) -> str:
        """Let a group in, whose rollouts are numbered from `first` on; where they find the policy."""
        self.rooms[group] = Room(first, max_tokens)
        return f"{self._server.url.removesuffix('/v1')}/groups/{group}/v1"

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
        return found

    def answer(self, group: int, session: str, fields: ChatFields) -> dict[str, Any]:
        """The reply to a call, once the generator has written it; the call is kept."""
        if group not in self.rooms:
            raise BadRequest(f"no group {group} is under way", None, 404)
        room = self.rooms[group]
        conversation = room.conversation(session)
        with self._reading:
            asked = read_aloud(fields, self.policy, self.template)
            tokens = self._tokens(conversation, asked)
        call = Call(self._prompt(conversation, tokens, fields, room.max_tokens))
        self._calls.put(call)
        completion = call.answer.result()
        conversation.asked = asked
        conversation.steps.append(Step(tokens, completion))
        return reply_to_guest(MODEL, tokens, completion, bool(fields.offered))

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()
        while True:
            try:
                self._calls.get_nowait().answer.set_exception(BadRequest("the policy is gone", None, 503))
            except Empty:
                return

    def _prompt(self, conversation: Conversation, tokens: tuple[int, ...], fields: ChatFields, most: int) -> Prompt:
        room = self.policy.context - len(tokens)
        if room < 1:
            raise BadRequest(NO_CONTEXT.format(context=self.policy.context, length=len(tokens)), "messages")
        asked = [each for each in (fields.max_completion_tokens, fields.max_tokens) if each]
        # Rollouts of a group begin with the same words, and must not all go on alike.
        salt = 1 + conversation.number * MOST_STEPS + len(conversation.steps)
        return Prompt(tokens, min([room, most, *asked]), stops_of(fields), salt)

    def _tokens(self, conversation: Conversation, asked: str) -> tuple[int, ...]:
        """The tokens of what is asked: those of the last call and its completion gone on, where the words go on."""
        fresh = encode(asked, self.policy)
        if not conversation.steps:
            return fresh
        last = conversation.steps[-1]
        said = conversation.asked + last.completion.text
        if not asked.startswith(said):
            return fresh
        return gone_on(self.policy, last.prompt, last.completion, asked[len(said) :])


class _Entrance(Server):
    """The server, whose connections know the reception."""

    def __init__(self, reception: Reception) -> None:
        self.reception = reception
        super().__init__("127.0.0.1", 0, _GuestHandler)


class _GuestHandler(Handler):
    """One connection of a guest: the address says which group asks, a header which of its rollouts."""

    server: _Entrance  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:  # noqa: N802 (the library's name)
        """The one model."""
        self.reply({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "operant"}]})

    def do_POST(self) -> None:  # noqa: N802 (the library's name)
        """Take the group's part off the address, and answer the rest."""
        # Guests leave without a word, and a connection that waits for them would hold its thread.
        self.close_connection = True
        found = ADDRESS.fullmatch(self.path)
        self.group = int(found[1]) if found else 0
        self.path = found[2] if found else self.path
        super().do_POST()

    def write(self, body: Mapping[str, Any]) -> None:
        """Answer a request for completions of a conversation."""
        if not self.path.endswith("/chat/completions"):
            raise BadRequest("guests ask /v1/chat/completions", None, 404)
        fields = read_fields(body, chat=True)
        if fields.n != 1 or fields.stream:
            raise BadRequest(
                "one completion at a time, and whole: n 1, stream false", "n" if fields.n != 1 else "stream"
            )
        self.reply(self.server.reception.answer(self.group, self.headers.get("X-Session-ID", ""), fields))
