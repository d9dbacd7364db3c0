"""Plain values as bytes, between a program under test and those that test it.

A reader builds nothing but builtin values, so whatever the other side sends, no method of its making is ever
called here. Everything else travels as the number of a handle. This text also runs inside the sandbox, alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

MOST_BYTES = 1 << 23
MOST_DEPTH = 100
CONSTANTS = {None: b"N", True: b"T", False: b"F", ...: b"E"}
TYPES = {kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)}
SEQUENCES = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z"}


class Malformed(Exception):
    """These bytes are no value, or a value too large or too deep to take."""


class End(Exception):
    """The other side has gone."""


def encoded(value: Any, handle: Callable[[Any], int], depth: int = 0) -> bytes:
    """The bytes of a value; subclasses of builtin types travel as those, all else as what `handle` says."""
    if depth > MOST_DEPTH:
        raise Malformed("a value too deep")
    if value is None or value is True or value is False or value is ...:
        return CONSTANTS[value] + b"0:"
    for kind, tag in SEQUENCES.items():
        if isinstance(value, kind):
            items = [encoded(item, handle, depth + 1) for item in kind.__iter__(value)]
            return framed(tag, len(items)) + b"".join(items)
    if isinstance(value, dict):
        pairs = [encoded(part, handle, depth + 1) for pair in dict.items(value) for part in pair]
        return framed(b"d", len(pairs)) + b"".join(pairs)
    tag, text = scalar(value, handle)
    return framed(tag, len(text)) + text


def scalar(value: Any, handle: Callable[[Any], int]) -> tuple[bytes, bytes]:
    """The tag and text of a value without parts. Numbers are in hexadecimal: exact, and of any length."""
    if isinstance(value, int):
        return b"i", int.__format__(int(value), "x").encode()
    if isinstance(value, float):
        return b"f", float.hex(value).encode()
    if isinstance(value, complex):
        return b"c", f"{value.real.hex()} {value.imag.hex()}".encode()
    if isinstance(value, str):
        return b"s", str.encode(value, "utf-8", "surrogatepass")
    if isinstance(value, (bytes, bytearray)):
        return b"b", bytes(value)
    if isinstance(value, range):
        return b"r", f"{value.start:x} {value.stop:x} {value.step:x}".encode()
    for name, kind in TYPES.items():
        if value is kind:
            return b"y", name.encode()
    return b"h", str(handle(value)).encode()


def framed(tag: bytes, count: int) -> bytes:
    """What stands before a value: its kind, and how many bytes or parts it has."""
    return tag + str(count).encode() + b":"


class Reader:
    """Reads one value from bytes that nobody vouches for. `handle` gives what a handle's number stands for."""

    def __init__(self, data: bytes, handle: Callable[[int], Any]) -> None:
        self._data = data
        self._at = 0
        self._handle = handle

    def value(self) -> Any:
        """The value that all the bytes make."""
        try:
            value = self._value(0)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError, RecursionError) as error:
            raise Malformed(f"no value: {type(error).__name__}") from None
        if self._at != len(self._data):
            raise Malformed("more than a value")
        return value

    def _value(self, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise ValueError
        tag = self._data[self._at : self._at + 1]
        colon = self._data.index(b":", self._at, self._at + 24)
        count = int(self._data[self._at + 1 : colon])
        self._at = colon + 1
        if not 0 <= count <= len(self._data) - self._at:
            raise ValueError
        if tag in b"ltSZd":
            return built(tag, [self._value(depth + 1) for _ in range(count)])
        text = self._data[self._at : self._at + count]
        self._at += count
        return self._handle(int(text)) if tag == b"h" else plain(tag, text)


def built(tag: bytes, items: list[Any]) -> Any:
    """A value with parts; a part that cannot be in a set is a TypeError."""
    if tag == b"d":
        return dict(zip(items[::2], items[1::2], strict=True))
    return {mark: kind for kind, mark in SEQUENCES.items()}[tag](items)


def plain(tag: bytes, text: bytes) -> Any:
    """A value without parts."""
    for constant, mark in CONSTANTS.items():
        if tag == mark:
            return constant
    if tag == b"i":
        return int(text, 16)
    if tag == b"f":
        return float.fromhex(text.decode())
    if tag == b"c":
        real, imaginary = text.decode().split(" ")
        return complex(float.fromhex(real), float.fromhex(imaginary))
    if tag == b"r":
        start, stop, step = (int(part, 16) for part in text.decode().split(" "))
        return range(start, stop, step)
    if tag == b"y":
        return TYPES[text.decode()]
    return {b"s": lambda: text.decode("utf-8", "surrogatepass"), b"b": lambda: text}[tag]()


def send(fd: int, data: bytes) -> None:
    """Write one message: its length and its bytes."""
    if len(data) > MOST_BYTES:
        raise Malformed("a value too large")
    message = memoryview(len(data).to_bytes(4, "big") + data)
    while message:
        try:
            message = message[os.write(fd, message) :]
        except BrokenPipeError:
            raise End from None


def receive(fd: int) -> bytes:
    """Read one message; `End` when there will be none."""
    size = int.from_bytes(exactly(fd, 4), "big")
    if size > MOST_BYTES:
        raise Malformed("a value too large")
    return exactly(fd, size)


def exactly(fd: int, size: int) -> bytes:
    """So many bytes."""
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 16))
        if not part:
            raise End
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
