"""A number to be found by guessing: the smallest dialogue in which a turn must answer the turn before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from operant.envs.text.dialogue import Dialogue, DialogueTask, Message, Response, Scripted
from operant.envs.text.generated import Generated, at_least
from operant.envs.text.numbers import LONGEST, READ, is_several
from operant.envs.text.task import Problem, Verdict
from operant.errors import UsageError


class Guess(Generated, DialogueTask):
    """Find a number from 0 to `numbers` - 1 in `turns` guesses; the world says whether it is higher or lower (final).

    The first guess is worth 1 if it is right, later ones evenly less, and none nothing. All numbers are in both
    splits: what is held out is the rollout, not the number.
    """

    BARE_STOP = ()

    def __init__(self, numbers: int = 100, turns: int = 10, **common: Any) -> None:
        super().__init__("guess", **common)
        for what, number, least in (("numbers", numbers, 2), ("turns", turns, 1)):
            at_least(self.name, what, number, least)
        if turns > numbers:
            raise UsageError("guess: more turns than numbers", remedy=f"turns: {numbers} or fewer")
        self.numbers = numbers
        self._turns = turns

    @property
    def turns(self) -> int:
        """The most guesses."""
        return self._turns

    def draw(self, rng: Random) -> tuple[int, int]:
        """The number, and a mark that makes every problem one of its own."""
        return rng.randrange(self.numbers), rng.getrandbits(48)

    def pose(self, puzzle: tuple[int, int]) -> tuple[str, int]:
        """The request, and the number."""
        if self.style == "bare":
            return "?", puzzle[0]
        asked = f"I have chosen a whole number from 0 to {self.numbers - 1}. You have {self.turns} guesses."
        return f"{asked} Answer with a number only; I shall say whether mine is higher or lower.\n", puzzle[0]

    def longest_answer(self) -> int:
        """The digits of the largest number and the end of the text."""
        return len(str(self.numbers - 1)) + 1

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        """A fresh round of guesses."""
        del seed
        return Guesses(problem, self.turns, self.style == "bare")

    def resume(self, problem: Problem, seed: int, snapshot: bytes) -> Dialogue:
        """The guesses so far."""
        dialogue = Guesses(problem, self.turns, self.style == "bare")
        dialogue.guessed, dialogue.faults, dialogue.found = (int(number) for number in snapshot.decode().split())
        return dialogue

    def agents(self) -> Mapping[str, Scripted]:
        """By chance, by halving what is left, told the number, without a number, and with all of them at once."""
        every = " ".join(map(str, range(self.numbers)))
        return {
            "novice": Scripted("novice", "novice", self._by_chance),
            "halving": Scripted("halving", "novice", self._halving),
            "told": Scripted("told", "expert", lambda problem, _: str(problem.answer)),
            "silent": Scripted("silent", "lazy", lambda _, __: "I do not know."),
            "all": Scripted("all", "cheater", lambda _, __: every),
        }

    def _by_chance(self, problem: Problem, said: Sequence[Message]) -> str:
        return str(Random(f"{problem.id}/{len(said)}").randrange(self.numbers))

    def _halving(self, problem: Problem, said: Sequence[Message]) -> str:
        del problem
        low, high = 0, self.numbers - 1
        for guess, answer in zip(_guesses(said), said[2::2], strict=True):
            low, high = (guess + 1, high) if "higher" in answer.text or ">" in answer.text else (low, guess - 1)
        return str((low + high) // 2)


class Guesses(Dialogue):
    """One round of guesses (final)."""

    def __init__(self, problem: Problem, turns: int, bare: bool) -> None:
        self.problem = problem
        self.turns = turns
        self.bare = bare
        self.guessed = self.faults = self.found = 0

    def opening(self) -> tuple[Message, ...]:
        """The request."""
        return (Message("user", self.problem.prompt),)

    def hear(self, text: str, cut: bool = False) -> Response:
        """Higher, lower or right."""
        del cut
        self.guessed += 1
        guess, chosen = _guess(text), self.problem.answer
        if guess is None:
            self.faults += 1
            return self._said("!", "That is no number.", fault="no number")
        if guess == chosen:
            self.found = self.guessed
            return self._said("=", "Right.")
        return self._said(">", "It is higher.") if guess < chosen else self._said("<", "It is lower.")

    def _said(self, sign: str, sentence: str, fault: str | None = None) -> Response:
        words = sign if self.bare else f"{sentence}\n"
        over = bool(self.found) or self.guessed >= self.turns
        return Response((Message("user", words),), fault=fault, done=over)

    def verdict(self) -> Verdict:
        """By the number of guesses that it took."""
        score = 1 - (self.found - 1) / self.turns if self.found else 0.0
        parts = {"final": score, "found": float(bool(self.found)), "faults": float(self.faults)}
        return Verdict(score, "right" if score == 1 else "partial" if self.found else "wrong", parts)

    def snapshot(self) -> bytes:
        """Three counters."""
        return f"{self.guessed} {self.faults} {self.found}".encode()


def _guess(text: str) -> int | None:
    """The last number of a text; a list of several is no guess, nor one that Python itself refuses for its length."""
    numbers = re.findall(r"[0-9]+", text[-READ:])
    return int(numbers[-1]) if numbers and len(numbers[-1]) <= LONGEST and not is_several(text) else None


def _guesses(said: Sequence[Message]) -> list[int]:
    return [int(message.text) for message in said if message.role == "assistant"]
