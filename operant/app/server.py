"""Starts the app: on this machine only, and without a word to anybody else."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from operant.errors import RunError, UsageError
from operant.install import install_extra

HOST = "127.0.0.1"
SCRIPT = Path(__file__).with_name("main.py")
ASGI = Path(__file__).with_name("asgi.py")
PACKAGES = ("streamlit", "plotly")
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.1
SETTINGS = {
    "server.address": HOST,
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "full",
    "logger.level": "error",
    "logger.hideWelcomeMessage": "true",
    "theme.light.primaryColor": "#0f766e",
    "theme.dark.primaryColor": "#2dd4bf",
}


def check_packages() -> None:
    """Refuse in one line where the app's packages are not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the app needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            remedy=install_extra("app"),
        )


def check_port(port: int) -> int:
    """The port, or a free one for 0; `UsageError` where another program has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as fault:
            raise UsageError(
                f"port {port} cannot be used: {fault.strerror}", remedy="operant app --port 0    (any that is free)"
            ) from None
        return probe.getsockname()[1]


def command(runs: Path, port: int, hosts: Sequence[str] = ()) -> list[str]:
    """The words that start the app, which may also be called by the names `hosts`."""
    settings = {**SETTINGS, "server.port": str(port)}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "streamlit", "run", str(ASGI), *flags, "--", str(runs), *hosts]


def attend(words: Sequence[str], url: str, browser: bool) -> int:
    """Run the app until Ctrl-C or a signal; open a browser once it answers, if wished. Returns 0 for such an end."""
    asked: list[int] = []
    process = subprocess.Popen(words)

    def end(number: int, _: object) -> None:
        asked.append(number)
        process.terminate()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    if browser:
        threading.Thread(target=_open_when_ready, args=(url, process), daemon=True).start()
    code = process.wait()
    if code and not asked:
        raise RunError(f"the app ended with exit code {code}", remedy=" ".join(words))
    return 0


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether the app answered before it ended and before patience did."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return True
        except OSError:
            time.sleep(POLL_SECONDS)
    return False


def _open_when_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    if wait_until_ready(url, process):
        webbrowser.open(url)
