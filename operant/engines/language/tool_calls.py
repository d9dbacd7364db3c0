"""Tools in conversations: what a policy is told of them by its chat template, and the calls that it writes.

A call is `<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`, the form that most open models are taught.
One that is no JSON, or names nothing, stays words: the environment sees what the policy said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def message_of(text: str) -> dict[str, Any]:
    """A policy's words as an assistant's message, calls of tools apart from the rest."""
    calls = [call for found in CALL.finditer(text) if (call := _call(found[1])) is not None]
    if not calls:
        return {"role": "assistant", "content": text}
    told = [
        {"id": f"call_{number}", "type": "function", "function": {**call, "arguments": json.dumps(call["arguments"])}}
        for number, call in enumerate(calls)
    ]
    words = CALL.sub(lambda found: "" if _call(found[1]) is not None else found[0], text).strip()
    return {"role": "assistant", "content": words or None, "tool_calls": told}


def calls_for_template(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of an assistant's message as chat templates read them: arguments are data, not text."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = dict(call.get("function") or {})
        given = function.get("arguments")
        with suppress(ValueError):  # arguments that are no JSON are shown as they were written
            function["arguments"] = json.loads(given) if isinstance(given, str) else given
        calls.append({"type": "function", "function": function})
    return calls


def _call(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    given = found.get("arguments", found.get("parameters", {}))
    return {"name": found["name"], "arguments": given} if isinstance(given, dict) else None
