"""A connection between the leader and one follower: messages both ways, and the news that the other end is gone.

A message is a line of JSON, which may announce files whose bytes follow it. Both ends send empty messages while they
have nothing to say, so that a machine that was switched off is noticed as well as a process that was killed.
"""

from __future__ import annotations

import json
import queue
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0
LONGEST_LINE = 1 << 24
BLOCK = 1 << 20
Message = dict[str, Any]


class Connection:
    """One end of it; `peer` says who the other end is."""

    def __init__(self, stream: socket.socket) -> None:
        self.peer = "?"
        self._socket = stream
        self._watched = False
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = stream.makefile("rb")
        self._sending = threading.Lock()
        self._received: queue.Queue[Message] = queue.Queue()
        self._closed = threading.Event()
        self._ended = threading.Event()

    def watch(self, on_end: Callable[[str], object], on_message: Callable[[Message], bool]) -> None:
        """From now on read in a thread, and send heartbeats.

        There `on_message` is called with each message, which is received by nobody else if it says so, and `on_end`
        once, with why the other end is gone.
        """
        self._watched = True
        self._socket.settimeout(SILENT_SECONDS)
        threading.Thread(target=self._read, args=(on_end, on_message), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def send(self, message: Message, files: Mapping[str, Path] | None = None) -> None:
        """Send a message and the bytes of files; where the other end is gone, `on_end` tells."""
        sizes = {name: path.stat().st_size for name, path in (files or {}).items()}
        with self._sending, suppress(OSError):
            self._socket.sendall(json.dumps({**message, "files": sizes} if sizes else message).encode() + b"\n")
            for path in (files or {}).values():
                with path.open("rb") as file:
                    self._socket.sendfile(file)

    def receive(self) -> Message:
        """The next message, once it is there; files that came with it lie in its `folder`."""
        return self._received.get()

    def read_now(self, seconds: float) -> Message:
        """The next message without `watch`; `OSError` or `ValueError` where none comes in time."""
        self._socket.settimeout(seconds)
        return _read_message(self._reader)

    def close(self) -> None:
        """End it; the other end reads what was sent before."""
        self._closed.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._watched:
            self._release()

    def _read(self, on_end: Callable[[str], object], on_message: Callable[[Message], bool]) -> None:
        try:
            while True:
                message = _read_message(self._reader)
                if message and not on_message(message):
                    self._received.put(message)
        except TimeoutError:
            cause = f"nothing was heard of it for {SILENT_SECONDS:.0f} s"
        except (OSError, ValueError):
            cause = "its connection closed"
        self._release()
        self._ended.set()
        if not self._closed.is_set():
            on_end(cause)

    def _release(self) -> None:
        self._reader.close()
        self._socket.close()

    def await_end(self, seconds: float) -> None:
        """Wait until the other end is gone, at most so long."""
        self._ended.wait(seconds)

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT_SECONDS):
            self.send({})


def _read_message(reader: BinaryIO) -> Message:
    line = reader.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ConnectionError("the connection closed")
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    sizes = message.pop("files", None)
    return message if not sizes else {**message, "folder": str(_read_files(reader, sizes))}


def _read_files(reader: BinaryIO, sizes: Mapping[str, int]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="operant-"))
    for name, size in sizes.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} lies elsewhere")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            while size > 0:
                block = reader.read(min(size, BLOCK))
                if not block:
                    raise ConnectionError("the connection closed")
                size -= file.write(block)
    return folder
