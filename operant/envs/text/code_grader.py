"""The program outside the sandbox that runs a problem's own tests against the program inside.

The tests are trusted and the program is not: here its functions are stand-ins that send their arguments through a
pipe and get a plain value back. What the tests compare with never goes in, and nothing of the program's making
comes out, so a test passes only by a right value. It runs alone, from its source text, in a process of its own.
"""

from __future__ import annotations

import builtins
import os
import resource
import sys
from typing import Any

from operant.envs.text.code_wire import End, Malformed, Reader, encoded, exactly, receive, send

MEMORY, CPU_SECONDS = 1 << 30, 30


ENDED = "the program ended before its tests"
OWN_VALUES = ("call", "get", "truth")


class Raised(Exception):
    """The tested program raised something that is no builtin exception."""


class Unsendable(Exception):
    """The tests ask for more than this grader can do."""


class Link:
    """The pipes to the tested program.

    `calls` counts the calls, and `values` what came back of the program's own making; `broken` is why there can be no
    more of them.
    """

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers
        self._handles: dict[int, Handle] = {}
        self.calls = self.values = 0
        self.broken = ""

    def ask(self, verb: str, *rest: Any) -> Any:
        """The value that a request comes to, or the exception."""
        try:
            send(self._requests, encoded((verb, *rest), number_of))
            answer = Reader(receive(self._answers), self.handle).value()
        except (End, Malformed) as error:
            self.broken = str(error) or ENDED
            raise
        self.values += verb in OWN_VALUES
        match answer:
            case (True, value):
                return value
            case (False, str(kind), str(message)):
                raise exception_named(kind)(message)
        self.broken = "an answer that is none"
        raise Malformed(self.broken)

    def named(self, name: str) -> Handle:
        """The stand-in for what the program calls so."""
        number = self.ask("name", name)
        if type(number) is not int:
            self.broken = "a name that stands for nothing"
            raise Malformed(self.broken)
        return self.handle(number)

    def handle(self, number: int) -> Handle:
        return self._handles.setdefault(number, Handle(self, number))


class Handle:
    """Something of the tested program that is no plain value: it equals only itself."""

    def __init__(self, link: Link, number: int) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)

    def __call__(self, *positional: Any, **named: Any) -> Any:
        self._link.calls += 1
        return self._link.ask("call", self, list(positional), named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._link.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask("set", self, name, value)

    def __bool__(self) -> bool:
        return self._link.ask("truth", self) is True


def number_of(thing: Any) -> int:
    """The number of a handle; nothing else may go in, for it might tell what is expected."""
    if type(thing) is not Handle:
        raise Unsendable(f"the tests hand over a {type(thing).__name__}, which is no plain value")
    return thing._number


def exception_named(name: str) -> type[Exception]:
    """The builtin exception of that name, as far as it is one that a test may catch; none ends a loop of the tests."""
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind in (StopIteration, StopAsyncIteration):
        return Raised
    return kind


def verdict(link: Link, program: str, names: list[str], prelude: str, tests: list[str]) -> tuple[str, str]:
    """The outcome and why. Only what happens before the program has any say can be an error of the grader."""
    namespace: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(prelude, "prelude", "exec"), namespace)
        compiled = [compile(test, "tests", "exec") for test in tests]
    except Exception as error:
        return "error", f"the tests do not load: {described(error)}"
    try:
        link.ask("load", program)
        namespace.update((name, link.named(name)) for name in names)
        for test in compiled:
            exec(test, namespace)
    except Unsendable as error:
        # After a value of the program's own the tests hand over what they made of that.
        return "wrong" if link.values else "error", str(error)
    except AssertionError as error:
        return "wrong", f"a test failed {error}".strip()
    except Exception as error:
        return "wrong", link.broken or described(error)
    if link.broken:
        return "wrong", link.broken
    return ("right", "") if link.calls else ("error", "the tests never called the program")


def described(error: Exception) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}"


def main() -> None:
    """Read the job, run the tests, and report on what was standard output; the tests' own prints go nowhere."""
    requests, answers = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    report = os.dup(1)
    size = int.from_bytes(exactly(0, 4), "big")
    job = Reader(exactly(0, size), lambda number: None).value()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    outcome, note = verdict(Link(requests, answers), *job)
    os.write(report, f"{outcome} {note[:300]}".encode("utf-8", "replace"))
    os._exit(0)


if __name__ == "__main__":
    main()
