"""`python -m ...` as a real process without paying for the imports of torch and its like each time.

A fork server that has imported the engines forks one process per command. Each is a process of its own: it can be
killed, interrupted and waited for like one that was started from nothing; the sessions that an `operant train` among
them launches are forked once more. `tests/cli`, parts of `tests/e2e` and the first run of every contract case start
from nothing, with other hash seeds.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING

from operant.launch import local
from operant.launch.budget import library_environment
from operant.launch.parent_watch import PARENT_VARIABLE

if TYPE_CHECKING:
    import pytest

    from operant.run.run import Run

# The fork server inherits these; a session's own setting would come after its libraries were loaded.
os.environ.update(library_environment(1))

PRELOADED = ["operant.cli.commands", "operant.engines.torch.learners", "operant.engines.torch.loop"]
PRELOADED += ["matplotlib.figure", "tests.warm"]
# Imported only, not used: a forked process must start JAX's threads itself.
PRELOADED += ["operant.engines.jax.lanes", "operant.envs.functional.classic"]
LANGUAGE = ["operant.engines.language.trainer", "transformers.models.qwen2.modeling_qwen2"]
PRELOADED += LANGUAGE if find_spec("transformers") else []
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(PRELOADED)


class WarmProcess:
    """The process of a command line that begins with `python -m`; the part of `subprocess.Popen` that is used."""

    def __init__(
        self,
        argv: list[str],
        output: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        errors: Path | None = None,
    ) -> None:
        # The fork server is its parent, so a launcher that it should watch would seem to have died.
        environment = {name: value for name, value in (env or os.environ).items() if name != PARENT_VARIABLE}
        self._errors = errors or output
        arguments = (argv, str(output), str(self._errors), environment, str(cwd or Path.cwd()))
        self._process: BaseProcess = _server.Process(target=_become, args=arguments)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

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
        os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait for the end; what it wrote to standard error."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise TimeoutError(f"the process did not end within {timeout} s")
        return b"", self._errors.read_bytes() if self._errors.exists() else b""


def operant_warm(*words: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What an `operant` command prints, and how it ends."""
    argv = [sys.executable, "-m", "operant", *words]
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        process = WarmProcess(argv, output, env, cwd, errors)
        said = process.communicate(timeout=240)[1]
        return subprocess.CompletedProcess(argv, process.returncode or 0, output.read_text(), said.decode())


def use_warm_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `operant train` and `operant.train` of this process fork their sessions."""

    def popen(argv: list[str], *, stdout: IO[bytes], env: Mapping[str, str], **_: object) -> WarmProcess:
        return WarmProcess(argv, Path(stdout.name), env)

    monkeypatch.setattr(local, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))


def run_warm(argv: list[str], run: Run) -> subprocess.CompletedProcess[str]:
    """In place of `operant.contract.processes._run`."""
    process = WarmProcess(argv, run.path / "errors.txt")
    errors = process.communicate(timeout=240)[1]
    return subprocess.CompletedProcess(argv, process.returncode or 0, "", errors.decode())


class _Forked:
    """A session of a warm `operant train`: a fork of that process, in place of `subprocess.Popen`."""

    def __init__(self, argv: list[str], *, stdout: IO[bytes], env: Mapping[str, str], **_: object) -> None:
        self._code: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(argv, stdout.name, stdout.name, dict(env), str(Path.cwd()))

    def poll(self) -> int | None:
        """The exit code if it has ended."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def send_signal(self, number: int) -> None:
        """Any signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _become(argv: list[str], output: str, errors: str, environment: dict[str, str], folder: str) -> None:
    """What a forked process does: the command line of `python -m`, its words going to files."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    for stream, name in ((sys.stdout, output), (sys.stderr, errors)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    local.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": _Forked})
    code = _run_module(argv[argv.index("-m") + 1 :])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run_module(words: list[str]) -> int:
    sys.argv = list(words)
    try:
        runpy.run_module(words[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
