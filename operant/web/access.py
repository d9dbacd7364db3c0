"""Who may ask a server: by the Host that a request names, the page it comes from, and an API key.

A browser sends requests for any page that is open in it, also to servers on its own machine. Such a page cannot choose
the `Origin` header, and a page whose name was made to lead to this machine (DNS rebinding) cannot choose `Host`.
"""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from operant.errors import UsageError

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
ANYWHERE = frozenset({"0.0.0.0", "::"})
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?")
KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class RequestError(Exception):
    """A request that cannot be answered; `param` is the field that is to blame."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.status = message, param, status

    def as_dict(self) -> dict[str, Any]:
        """The error as OpenAI's clients expect it."""
        kind = KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.status}}


@dataclass(frozen=True)
class Access:
    """Who may ask.

    `hosts` are the names under which the server may be called; with `any_address` also every IP address, which no
    stranger's name can stand for. `origins` are pages elsewhere that may ask, `*` for all. `/health` needs no key.
    """

    hosts: frozenset[str] = LOCAL_NAMES
    origins: frozenset[str] = frozenset()
    any_address: bool = False
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def at(
        cls, bound: str, hosts: Iterable[str] = (), origins: Iterable[str] = (), api_key: str | None = None
    ) -> Access:
        """The access to a server that listens at the address `bound`."""
        names = {bound, *hosts, *({socket.gethostname()} if bound in ANYWHERE else ())}
        for name in hosts:
            if _host_name(name) != name.lower().strip("[]"):
                raise UsageError(f"{name!r} is no host name", remedy="--allow-host lab.example.org    (without a port)")
        for origin in origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise UsageError(f"{origin!r} is no origin", remedy="--allow-origin https://lab.example.org")
        allowed = LOCAL_NAMES | {name.lower().strip("[]") for name in names}
        return cls(allowed, frozenset(map(str.lower, origins)), bound in ANYWHERE, api_key)

    def check(self, headers: Mapping[str, str], path: str) -> None:
        """Raise `RequestError` for a request that may not be answered."""
        self._check_host(headers.get("host", ""))
        self._check_origin(headers)
        if self.api_key is not None and path != "/health" and not self._has_key(headers.get("authorization", "")):
            raise RequestError("this server needs its API key: Authorization: Bearer KEY", None, 401)

    def _check_host(self, host: str) -> None:
        name = _host_name(host)
        if name is None or not (name in self.hosts or (self.any_address and _is_address(name))):
            raise RequestError(f"this server is not called {host[:100]!r}; --allow-host lets it be", None, 403)

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin", "").lower()
        if "*" in self.origins or origin in self.origins:
            return
        if origin:
            foreign = origin.partition("://")[2] != headers.get("host", "").lower()
        else:  # what a page only embeds carries no Origin, but every browser says where it comes from
            site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
            foreign = site not in ("none", "same-origin") and mode != "navigate"
        if foreign:
            raise RequestError("a page of another origin may not ask this server; --allow-origin lets it", None, 403)

    def _has_key(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        sent = given.strip().encode("latin-1", "replace")  # the bytes that came
        return scheme.lower() == "bearer" and hmac.compare_digest(sent, (self.api_key or "").encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _host_name(header: str) -> str | None:
    """The name in a Host header, without its port; None where it is no name."""
    found = HOST.fullmatch(header.lower())
    return (found[1] or found[2]).rstrip(".") if found else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
