"""What a session costs, attempt by attempt, in `cost.json`: clock, CPU time, GPUs, tokens, energy, price.

A thread counts every few seconds, so a kill loses little of the account. Work that a resume repeats was paid for twice
and stands in two attempts. Sessions that one process trains together share its CPU time and energy evenly; sessions of
several processes at the same time each have the full clock here, and readers (`operant.report.cost`) divide it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from operant.run.disk import write_text
from operant.run.layout import COST_FILE, FORMAT, LEFTOVER_PREFIX
from operant.run.progress import Progress
from operant.run.usage import cpu_joules, cpu_seconds, gpu_joules, gpu_names, machine

COUNT_SECONDS = 5.0


class CostAccount:
    """The account of one attempt at a session. `close` it; until then a thread of the process counts for it.

    `at` is how far the session has come, kept current by the session. `may_write` says whether the directory is ours.
    """

    def __init__(
        self, session: Path, attempt: int, start: Progress, price: float | None, may_write: Callable[[], bool]
    ) -> None:
        self.at = start
        self.gpus: list[str] | None = None
        self.cpu_seconds = 0.0
        self.joules: dict[str, float] = {}
        self._file = session / COST_FILE
        self._start, self._price, self._may_write = start, price, may_write
        self._attempt = attempt
        self._before = [each for each in read_attempts(session) if each.get("attempt") != attempt]
        self._began = self.ended = time.time()
        _meter.open(self)

    def use_gpus(self, count: int) -> None:
        """Say how many GPUs the session computes on, from the first that it may see."""
        self.gpus = gpu_names(count)

    def count(self) -> None:
        """Bring the account up to date now: with a checkpoint, so that it is never behind what a resume starts from."""
        _meter.count()

    def close(self) -> None:
        """Count once more, write durably, and stop."""
        _meter.close(self)

    def write(self, closed: bool = False) -> None:
        """Replace the file; a failure is not worth a training, and without room or right there is no account."""
        if not self._may_write():
            return
        text = json.dumps({"format": FORMAT, "attempts": [*self._before, self._entry(closed)]}, indent=2) + "\n"
        with suppress(OSError):
            if closed:
                write_text(self._file, text)
                return
            # Not forced to the disk: a power cut may lose some seconds of an account, a kill does not.
            temporary = self._file.with_name(f"{LEFTOVER_PREFIX}{self._file.name}")
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, self._file)

    def _entry(self, closed: bool) -> dict[str, Any]:
        start, at = self._start, self.at
        entry: dict[str, Any] = {
            "attempt": self._attempt,
            "machine": machine(),
            "began": _iso(self._began),
            "ended": _iso(self.ended),
            "closed": closed,
            "wall_seconds": round(self.ended - self._began, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "gpus": self.gpus,
            "frames": [start.frames, at.frames],
            "tokens": [start.tokens, at.tokens],
            "seconds": [round(start.seconds, 3), round(at.seconds, 3)],
            "price_per_hour": self._price,
        }
        energy = {f"{part}_joules": round(joules, 1) for part, joules in self.joules.items()}
        return {key: value for key, value in {**entry, **energy}.items() if value is not None}


class _Meter:
    """Counts for all open accounts of a process; what they use together is divided evenly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: list[CostAccount] = []
        self._ended = threading.Event()
        self._cpu = 0.0
        self._counters: dict[str, float] = {}

    def open(self, account: CostAccount) -> None:
        with self._lock:
            self._count()
            if not self._accounts:
                self._cpu, self._counters = cpu_seconds(), _energy([])
                self._ended = threading.Event()
                threading.Thread(target=self._keep_counting, args=[self._ended], name="run-cost", daemon=True).start()
            self._accounts.append(account)
            account.write()

    def close(self, account: CostAccount) -> None:
        with self._lock:
            if account not in self._accounts:
                return
            self._count()
            self._accounts.remove(account)
            if not self._accounts:
                self._ended.set()
        account.write(closed=True)

    def count(self) -> None:
        with self._lock:
            self._count()
            for account in self._accounts:
                account.write()

    def _keep_counting(self, ended: threading.Event) -> None:
        while not ended.wait(COUNT_SECONDS):
            self.count()

    def _count(self) -> None:
        if not self._accounts:
            return
        now, cpu = time.time(), cpu_seconds()
        gpus = sorted({gpu for account in self._accounts for gpu in account.gpus or ()})
        counters = _energy(gpus)
        # A child that ends unseen takes its time with it, and a counter may begin again at 0.
        spent = max(0.0, cpu - self._cpu) / len(self._accounts)
        for account in self._accounts:
            account.ended = max(account.ended, now)
            account.cpu_seconds += spent
            for name, value in counters.items():
                sharers = [each for each in self._accounts if name == "cpu" or name in (each.gpus or ())]
                if account in sharers and value >= self._counters.get(name, value):
                    part = "cpu" if name == "cpu" else "gpu"
                    used = (value - self._counters.get(name, value)) / len(sharers)
                    account.joules[part] = account.joules.get(part, 0.0) + used
        self._cpu, self._counters = max(cpu, self._cpu), counters


def read_attempts(session: Path) -> list[dict[str, Any]]:
    """The attempts in a session's `cost.json`, oldest first; none where there is no such file or it is damaged."""
    try:
        document = json.loads((Path(session) / COST_FILE).read_bytes())
        return [dict(attempt) for attempt in document["attempts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _energy(gpus: list[str]) -> dict[str, float]:
    """Every energy counter that can be read, in joules."""
    processor = cpu_joules()
    return {**({} if processor is None else {"cpu": processor}), **gpu_joules(gpus)}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _start_anew() -> None:
    """A forked child counts for itself; the accounts of its parent are not its own."""
    global _meter
    _meter = _Meter()


_meter = _Meter()
os.register_at_fork(after_in_child=_start_anew)
