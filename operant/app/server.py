"""Starts the app: on this machine only, and without a word to anybody else."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from operant.errors import UsageError
from operant.install import install_extra

if TYPE_CHECKING:
    from operant.web.access import Access
    from operant.web.server import WebServer

HOST = "127.0.0.1"
PACKAGES = ("starlette", "uvicorn")


def check_packages() -> None:
    """Refuse in one line where the app's packages are not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the app needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            remedy=install_extra("app"),
        )


def access(hosts: Sequence[str]) -> Access:
    """Who may ask: browsers on this machine, which may also call the app by the names `hosts`."""
    from operant.web.access import Access

    return Access.at(HOST, hosts)


def listen(port: int) -> WebServer:
    """A server that listens already, at any free port for 0; `UsageError` where another program has the port."""
    from operant.web.server import WebServer

    return WebServer(HOST, port)


def serve(server: WebServer, runs: Path, allowed: Access, browser: bool) -> None:
    """Answer until Ctrl-C or a signal, both of which are a good end; open a browser first, if wished."""
    from operant.app.routes import application
    from operant.web.guard import Guard

    for number in (signal.SIGINT, signal.SIGTERM):
        # The server hears a signal first, and raises it again once it has ended.
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_load, daemon=True).start()
    if browser:
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    server.run(Guard(application(runs), allowed))


def _load() -> None:
    """Load what computes while the browser is still fetching the page."""
    from operant.app import details, lines, series  # noqa: F401
