"""The process beside us in which a verifiers environment lives, spoken to in lines of JSON."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

from operant.errors import OperantError, RunError, UsageError

INSIDE = Path(__file__).parent / "inside"
OPEN_SECONDS = 600.0
"""An environment may fetch its data when it is opened."""
TAIL = 400


class ExternalProcess:
    """One child and its replies (final). Any thread may ask; a child that dies fails whoever waits.

    A child that is closed has `END_SECONDS` to leave by itself.
    """

    END_SECONDS = 10.0

    def __init__(self, python: str | None, wanted_by: str) -> None:
        self.wanted_by = wanted_by
        self._tickets = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the child)
        try:
            self._child = subprocess.Popen(
                [python or sys.executable, str(INSIDE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "OPERANT_POLICY_KEY": "none", "PYTHONDONTWRITEBYTECODE": "1"},
                # Ctrl-C is for us: the child ends when its pipe does.
                start_new_session=True,
                encoding="utf-8",
            )
        except OSError as fault:
            self._errors.close()
            raise UsageError(
                f"{wanted_by}: there is no Python at {python}: {fault.strerror or fault}",
                remedy="python: FOLDER/bin/python in env.text.arguments",
            ) from fault
        self._listener = threading.Thread(target=self._listen, name="external-env", daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._child.poll() is None

    def ask(self, do: str, seconds: float, **request: Any) -> dict[str, Any]:
        """The reply to a request; `UsageError` for one that is refused, `RunError` for a failure."""
        _, answer = self.begin(do, **request)
        try:
            return answer.result(seconds)
        except Late:
            self.close()
            raise RunError(f"{self.wanted_by} has not answered {do!r} within {seconds:g} s") from None

    def begin(self, do: str, **request: Any) -> tuple[int, Future[dict[str, Any]]]:
        """The ticket of a request, and the reply that is to come."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            ticket = next(self._tickets)
            self._waiting[ticket] = answer
        self._send({"do": do, "ticket": ticket, **request})
        return ticket, answer

    def drop(self, ticket: int) -> None:
        """Cancel a group whose result is not awaited any more."""
        with self._lock:
            self._waiting.pop(ticket, None)
        self._send({"do": "drop", "ticket": ticket})

    def close(self) -> None:
        """End the child and whatever it has started; may be called twice."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(self.END_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(self.END_SECONDS)
        self._listener.join(self.END_SECONDS)
        self._errors.close()

    def _send(self, content: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            with self._lock:
                self._child.stdin.write(json.dumps(content) + "\n")
                self._child.stdin.flush()
        except (OSError, ValueError):
            self._listener.join(self.END_SECONDS)
            self._fail_all()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            reply = json.loads(line)
            with self._lock:
                answer = self._waiting.pop(reply["ticket"], None)
            if answer is not None:
                self._settle(answer, reply)
        self._child.stdout.close()
        self._child.wait()
        self._fail_all()

    def _settle(self, answer: Future[dict[str, Any]], reply: dict[str, Any]) -> None:
        if "refused" in reply:
            answer.set_exception(UsageError(f"{self.wanted_by}: {reply['refused']}", remedy=reply.get("remedy")))
        elif "failed" in reply:
            answer.set_exception(RunError(f"{self.wanted_by}: {reply['failed']}"))
        else:
            answer.set_result(reply)

    def _fail_all(self) -> None:
        """Waiting callers get an error that says how the child ended."""
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
        if waiting:
            fault = self._death()
            for answer in waiting:
                answer.set_exception(fault)

    def _death(self) -> OperantError:
        said = ""
        if not self._errors.closed:
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip()
        last = said.splitlines()[-1][-TAIL:] if said else "it said nothing"
        return RunError(f"{self.wanted_by}: its process ended: {last}")
