"""Tools in conversations: what a policy is told of them by its chat template, and the calls that it writes.

A call is `<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`, the form that most open models are taught.
One that is no JSON, or names nothing, stays words: the environment sees what the policy said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

OPENING, CLOSING = "<tool_call>", "</tool_call>"


def message_of(text: str) -> dict[str, Any]:
    """A policy's words as an assistant's message, calls of tools apart from the rest."""
    calls: list[dict[str, str]] = []
    words: list[str] = []
    for part, marked in _parts(text):
        call = _call(part) if marked else None
        if call is not None:
            calls.append(call)
        else:
            words.append(f"{OPENING}{part}{CLOSING}" if marked else part)
    if not calls:
        return {"role": "assistant", "content": text}
    told = [{"id": f"call_{number}", "type": "function", "function": call} for number, call in enumerate(calls)]
    return {"role": "assistant", "content": "".join(words).strip() or None, "tool_calls": told}


def calls_for_template(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of an assistant's message as chat templates read them: arguments are data, not text."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = dict(call.get("function") or {})
        given = function.get("arguments")
        with suppress(ValueError, RecursionError):  # arguments that are no JSON are shown as they were written
            function["arguments"] = json.loads(given) if isinstance(given, str) else given
        calls.append({"type": "function", "function": function})
    return calls


def _parts(text: str) -> list[tuple[str, bool]]:
    """The text in parts: what stands between the marks of a call, and what does not.

    Every character is looked at once, however many marks there are and whatever is missing of them.
    """
    parts: list[tuple[str, bool]] = []
    at = 0
    while (start := text.find(OPENING, at)) >= 0:
        end = text.find(CLOSING, start)
        if end < 0:
            break
        parts += [(text[at:start], False), (text[start + len(OPENING) : end], True)]
        at = end + len(CLOSING)
    return [*parts, (text[at:], False)]


def _call(text: str) -> dict[str, str] | None:
    """The name and the arguments, as JSON, of a call; None for what is none."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("name"), str):
            return None
        given = found.get("arguments", found.get("parameters", {}))
        return {"name": found["name"], "arguments": json.dumps(given)} if isinstance(given, dict) else None
    except (ValueError, RecursionError):
        return None
