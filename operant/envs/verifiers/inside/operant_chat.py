"""A harness for verifiers that holds a plain conversation in its own process: it starts no program and needs no uv."""

from __future__ import annotations

from typing import Any

import httpx  # pyright: ignore[reportMissingImports]
import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from verifiers.v1.dialects.chat import message_to_wire  # pyright: ignore[reportMissingImports]

__all__ = ["ChatHarness"]


class ChatHarnessConfig(vf.HarnessConfig):
    """It has no settings of its own."""


class ChatHarness(vf.Harness[ChatHarnessConfig]):
    """Asks the policy once for every turn."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def wishes(self, data: Any) -> dict[str, Any]:
        """Further fields of a request."""
        del data
        return {}

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        """One turn: the conversation so far goes to the policy, whose reply lands in the trace."""
        if mcp_urls:
            raise vf.HarnessError("operant_chat has no tools, and this task has; choose the harness `null`, with uv")
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": "user", "content": prompt}] if isinstance(prompt, str) else map(message_to_wire, prompt)
        async with httpx.AsyncClient(timeout=None) as client:
            reply = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                json={"model": ctx.model, "messages": messages, **self.wishes(data)},
                headers={"Authorization": f"Bearer {secret}"},
            )
        failed = reply.status_code >= 400 and trace.stop_condition is None
        return vf.ProgramResult(exit_code=1 if failed else 0, stdout="", stderr=reply.text if failed else "")
