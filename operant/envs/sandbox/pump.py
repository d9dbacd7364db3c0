"""Feeding a program and collecting what it prints, within its time."""

from __future__ import annotations

import os
import selectors
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from operant.envs.sandbox.limits import Ran
from operant.envs.sandbox.running import Running

CHUNK = 1 << 16
GRACE = 5.0
TAIL = 1 << 14


@dataclass
class Kept:
    """The first `most` bytes of a stream, how many came after them, and the last of those."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    tail: bytes = b""

    @property
    def cut(self) -> bool:
        return self.dropped > 0

    def take(self, chunk: bytes) -> None:
        room = self.most - len(self.data)
        self.data += chunk[:room]
        if rest := chunk[room:]:
            self.dropped += len(rest)
            self.tail = (self.tail + rest)[-TAIL:]


def pump(running: Running, stdin: bytes, seconds: float, keep: int) -> Ran:
    """Give it its input, collect its output, and end it when its time is over."""
    began = time.monotonic()
    out, err = Kept(keep), Kept(keep)
    in_time = exchange(running, stdin, out, err, began + seconds)
    ended = running.wait(max(began + seconds - time.monotonic(), 0)) if in_time else None
    if ended is None:
        running.kill()
        exchange(running, b"", out, err, time.monotonic() + GRACE)
        ended = replace(running.wait(GRACE) or Ran(-9, b"", b"", 0), killed="time")
    return replace(
        ended,
        out=bytes(out.data),
        err=bytes(err.data),
        cut=out.cut or err.cut,
        dropped=out.dropped,
        tail=out.tail,
        seconds=time.monotonic() - began,
    )


def exchange(running: Running, stdin: bytes, out: Kept, err: Kept, deadline: float) -> bool:
    """Move bytes until both outputs have ended; False when the deadline came first."""
    waiting = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        selector.register(running.stdout, selectors.EVENT_READ, out)
        selector.register(running.stderr, selectors.EVENT_READ, err)
        if not waiting:
            running.close_stdin()
        else:
            os.set_blocking(running.stdin, False)
            selector.register(running.stdin, selectors.EVENT_WRITE)
        while any(key.data for key in selector.get_map().values()):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _ in selector.select(left):
                if key.data is None:
                    waiting = feed(running, selector, waiting)
                elif chunk := os.read(key.fd, CHUNK):
                    key.data.take(chunk)
                else:
                    selector.unregister(key.fd)
    return True


def feed(running: Running, selector: selectors.BaseSelector, waiting: memoryview) -> memoryview:
    """Write what fits; a program that has closed its input gets no more of it."""
    with suppress(BlockingIOError):
        try:
            waiting = waiting[os.write(running.stdin, waiting[:CHUNK]) :]
        except BrokenPipeError:
            waiting = waiting[:0]
    if not waiting:
        selector.unregister(running.stdin)
        running.close_stdin()
    return waiting
