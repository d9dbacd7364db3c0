"""Scripted agents by what they say, one thing a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from operant.envs.text.dialogue import Kind, Message, Scripted
from operant.envs.text.task import Problem

Words = str | Callable[[Random], str]


def says(name: str, kind: Kind, *turns: Words) -> Scripted:
    """An agent that says these things in turn and then submits; what is to be drawn comes from the problem's seed."""

    def act(problem: Problem, said: Sequence[Message]) -> str:
        turn = sum(message.role == "assistant" for message in said)
        if turn >= len(turns):
            return "submit"
        words = turns[turn]
        return words if isinstance(words, str) else words(Random(f"{name}/{problem.answer['seed']}/{turn}"))

    return Scripted(name, kind, act)


def write(path: str, text: str) -> str:
    """The words that write a file of many lines."""
    return f"```write {path}\n{text}\n```"


def bash(command: str) -> str:
    """The words that run a command."""
    return f"```bash\n{command}\n```"
