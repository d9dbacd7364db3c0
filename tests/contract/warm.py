"""Sessions as real processes without paying for torch's import each time.

A fork server that has imported the engine forks one process per session. Each is a process of its
own: it can be killed, interrupted and waited for like one that `operant train` starts. The case's
first run is started from nothing, so that the two ways, with their different hash seeds, must agree.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path

PRELOADED = ["operant.cli.commands", "operant.engines.torch.learners", "operant.engines.torch.loop"]
# Imported only, not used: a forked process must start JAX's threads itself.
PRELOADED += ["operant.engines.jax.lanes", "operant.envs.functional.classic"]
PRELOADED += ["operant.engines.language.trainer"] if find_spec("transformers") else []
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(PRELOADED)


class WarmProcess:
    """A session's process; the part of `subprocess.Popen` that the tests use."""

    def __init__(self, arguments: list[str], errors: Path) -> None:
        self._errors = errors
        self._process: BaseProcess = _server.Process(target=_main, args=(arguments, str(errors)))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code if it has ended."""
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Any other signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait for the end; what it wrote to standard error."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise TimeoutError(f"the session did not end within {timeout} s")
        return b"", self._errors.read_bytes() if self._errors.exists() else b""


def _main(arguments: list[str], errors: str) -> None:
    """What the forked process does: the command line, its words going to a file."""
    file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, sys.stderr.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    from operant.cli.app import run

    code = run(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr.flush()
    os._exit(code)
