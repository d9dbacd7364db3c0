"""Lines of JSON: one object in, one object out; whatever else is printed goes to the error stream."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, TextIO


class Refusal(Exception):
    """A request that cannot be met, with a message for the user; `remedy` is what to try."""

    def __init__(self, cause: str, remedy: str | None = None) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


class Wire:
    """The two ends of the pipe; environments print, so standard output is not theirs any more (final)."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._in: TextIO = os.fdopen(os.dup(0), "r", encoding="utf-8")
        os.dup2(2, 1)
        quiet = os.open(os.devnull, os.O_RDONLY)
        os.dup2(quiet, 0)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any] | None:
        """The next request; None at the end."""
        line = self._in.readline()
        return json.loads(line) if line else None

    def write(self, content: dict[str, Any]) -> None:
        """One reply."""
        with self._lock:
            self._out.write(json.dumps(content, default=str) + "\n")
            self._out.flush()


def words_of(fault: BaseException) -> str:
    """A failure in one line, the cause that began it first."""
    chain = [fault]
    while (inner := chain[-1].__cause__) is not None and len(chain) < 8:
        chain.append(inner)
    causes = [f"{type(each).__name__}: {' '.join(str(each).split())}".rstrip(": ") for each in reversed(chain)]
    return "; ".join(dict.fromkeys(causes))[:600]
