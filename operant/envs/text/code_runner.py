"""The program inside the sandbox that loads the program under test and calls it as requested.

It need not be trusted: it can send nothing but values and says nothing about whether they are right.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from operant.envs.text.code_wire import End, Malformed, Reader, encoded, receive, send


class Runner:
    """The program under test and everything of it that has been handed out."""

    def __init__(self) -> None:
        self._module = type(sys)("candidate")
        self._handed: list[Any] = []

    def handle(self, thing: Any) -> int:
        """The number of a thing; the same thing keeps its number."""
        for number, known in enumerate(self._handed):
            if known is thing:
                return number
        self._handed.append(thing)
        return len(self._handed) - 1

    def thing(self, number: int) -> Any:
        return self._handed[number]

    def answer(self, request: bytes) -> bytes:
        """What a request comes to: a value or what was raised."""
        try:
            verb, *rest = Reader(request, self.thing).value()
            result = (True, getattr(self, f"do_{verb}")(*rest))
            return encoded(result, self.handle)
        except BaseException as error:
            kind = next((base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"), "Exception")
            return encoded((False, kind, str(error)[:500]), self.handle)

    def do_load(self, source: str) -> None:
        sys.modules["candidate"] = self._module
        exec(compile(source, "candidate.py", "exec"), self._module.__dict__)

    def do_name(self, name: str) -> int:
        """The handle of what the program calls so, even if that is a builtin that could travel by itself."""
        if name not in self._module.__dict__:
            raise NameError(f"name {name!r} is not defined")
        return self.handle(self._module.__dict__[name])

    def do_call(self, function: Any, positional: list[Any], named: dict[str, Any]) -> Any:
        return function(*positional, **named)

    def do_get(self, thing: Any, name: str) -> Any:
        return getattr(thing, name)

    def do_truth(self, thing: Any) -> bool:
        return bool(thing)

    def do_set(self, thing: Any, name: str, value: Any) -> None:
        setattr(thing, name, value)


def private_pipes() -> tuple[int, int]:
    """The two pipes, moved away from where a program reads and prints."""
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    return requests, answers


def main() -> None:
    """Answer until nobody asks."""
    requests, answers = private_pipes()
    runner = Runner()
    while True:
        try:
            send(answers, runner.answer(receive(requests)))
        except End:
            os._exit(0)
        except Malformed:
            os._exit(1)


if __name__ == "__main__":
    main()
