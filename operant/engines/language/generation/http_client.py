"""JSON over HTTP to one server, with limits: of time, and of how often a failing request is tried again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from operant.errors import RunError, UsageError

PAUSES = (0.5, 2.0, 5.0)
"""Seconds before the second, third and fourth try."""

SHOWN = 300
BUSY = 429
KEY = "OPERANT_API_KEY"


class Client:
    """Asks the server at `url`, which may be given with or without its `/v1` (final)."""

    def __init__(self, url: str, timeout: float = 600.0, pauses: tuple[float, ...] = PAUSES) -> None:
        """`OPERANT_API_KEY` is sent where it is set."""
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is no address of a server", remedy="http://HOST:PORT/v1")
        self.root = url.rstrip("/").removesuffix("/v1")
        self.url = f"{self.root}/v1"
        self.timeout = timeout
        self.pauses = pauses
        key = os.environ.get(KEY, "").strip()
        # Not sent on to wherever a redirect leads.
        self._secret = {"Authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str) -> dict[str, Any]:
        """The JSON at a path."""
        return self._patiently(Request(self.url + path))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON reply to a body."""
        headers = {"Content-Type": "application/json"}
        return self._patiently(Request(self.url + path, json.dumps(body).encode(), headers))

    def health(self) -> dict[str, Any]:
        """What the server says of itself; nothing where it is not one of ours."""
        try:
            return self._once(Request(f"{self.root}/health"))
        except (HTTPError, ValueError):
            return {}
        except (OSError, HTTPException) as fault:
            raise self._silent(fault, 1) from fault

    def _patiently(self, request: Request) -> dict[str, Any]:
        """Try again what may pass: no connection, no reply in time, a failure of the server's own."""
        for tries, pause in enumerate((*self.pauses, None), 1):
            try:
                return self._once(request)
            except HTTPError as refusal:
                words = refusal.read().decode("utf-8", "replace")
                if (refusal.code < 500 and refusal.code != BUSY) or pause is None:
                    raise RunError(f"the server refuses: {refusal.code} {_reason(words)}", place=self.url) from None
            except ValueError as problem:
                raise RunError(f"the server's reply is no JSON: {problem}", place=self.url) from None
            except (OSError, HTTPException) as fault:
                if pause is None:
                    raise self._silent(fault, tries) from fault
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request) -> dict[str, Any]:
        for name, value in self._secret.items():
            request.add_unredirected_header(name, value)
        with urlopen(request, timeout=self.timeout) as reply:
            return json.load(reply)

    def _silent(self, fault: Exception, tries: int) -> RunError:
        why = fault.reason if isinstance(fault, URLError) else f"{type(fault).__name__}: {fault}"
        times = "once" if tries == 1 else f"{tries} times"
        return RunError(
            f"the server does not answer, asked {times}: {why}",
            place=self.url,
            remedy="operant serve MODEL    (is it running? at this address?)",
        )


def _reason(words: str) -> str:
    """The message in an error of OpenAI's form, or the beginning of whatever came."""
    try:
        return str(json.loads(words)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return words[:SHOWN]
