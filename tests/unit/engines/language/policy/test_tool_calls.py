"""Tools in conversations: calls in a policy's words, and a server that tells of tools and finds calls."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from operant.engines.language.policy.chat_template import render_turns
from operant.engines.language.policy.tool_calls import message_of
from operant.engines.language.serving.requests import read_request, turn_of
from operant.web.access import RequestError
from tests.unit.engines.language.served_models import talking_policy

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
TEMPLATE = (
    "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}"
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% for c in m.tool_calls or [] %}({{ c.function.name }} {{ c.function.arguments.a }}){% endfor %}{% endfor %}[a]"
)


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("plain words", "plain words", []),
        ('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', None, [("add", {"a": 1})]),
        (
            'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n'
            '<tool_call>{"name": "end"}</tool_call>',
            "I add.",
            [("add", {"a": 1}), ("end", {})],
        ),
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", []),
        ('<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"arguments": {}}</tool_call>', []),
    ],
)
def test_calls_in_words(text: str, content: str | None, calls: list[tuple[str, dict[str, int]]]) -> None:
    message = message_of(text)
    found = [call["function"] for call in message.get("tool_calls", ())]
    assert message["content"] == content
    assert [(call["name"], json.loads(call["arguments"])) for call in found] == calls


def test_a_template_is_told_of_tools_and_calls() -> None:
    policy = talking_policy()
    policy.tokenizer.chat_template = TEMPLATE
    asked = {"role": "user", "content": "1 + 2?"}
    said = message_of('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>')
    answer = {"role": "tool", "tool_call_id": "call_0", "content": "3"}
    turns = [turn_of(message) for message in (asked, said, answer)]
    assert render_turns(turns, policy, tools=[TOOL]) == "<add>[user]1 + 2?[assistant](add 1)[tool]3[a]"


def test_a_request_with_tools() -> None:
    body = {"messages": [{"role": "user", "content": "a"}], "tools": [TOOL], "max_tokens": 2}
    policy = talking_policy()
    assert read_request(body, True, policy, "small").tools
    assert not read_request({**body, "tool_choice": "none"}, True, policy, "small").tools
    with pytest.raises(RequestError, match="no chat template"):
        read_request(body, True, replace(policy, has_chat_template=False), "small", "raw")
    with pytest.raises(RequestError, match="a stream has no"):
        read_request({**body, "stream": True}, True, policy, "small")


@pytest.mark.parametrize(
    "text", ["<tool_call>" * 50_000, "<tool_call>" + " " * 200_000, "<tool_call>{}</tool_call>" * 20_000]
)
def test_no_text_takes_long_to_look_for_calls(text: str) -> None:
    assert message_of(text) == {"role": "assistant", "content": text}


@pytest.mark.parametrize("depth", [100_000, 990])
def test_arguments_that_are_too_deep_stay_words(depth: int) -> None:
    text = f'<tool_call>{{"name": "add", "arguments": {{"a": {"[" * depth}{"]" * depth}}}}}</tool_call>'
    assert json.dumps(message_of(text))


def test_half_a_character_becomes_tokens() -> None:
    policy = talking_policy()
    query = read_request(
        {"messages": [{"role": "user", "content": "a\ud800b"}], "max_tokens": 2}, True, policy, "small"
    )
    other = read_request(
        {"messages": [{"role": "user", "content": "a\ufffdb"}], "max_tokens": 2}, True, policy, "small"
    )
    assert query.prompts == other.prompts
