"""Letters: count one of them in a string, or write the string again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from operant.envs.text.generated import Generated, at_least
from operant.envs.text.task import RIGHT, WRONG, Problem, Verdict
from operant.envs.text.whole_numbers import WholeNumberTask
from operant.errors import UsageError

ALPHABET = "abcdefgh"


class CountLetters(WholeNumberTask):
    """How often a letter occurs in a string of `length` letters (final)."""

    def __init__(self, length: int = 8, alphabet: str = "abcde", **common: Any) -> None:
        super().__init__("count_letters", **common)
        at_least(self.name, "length", length, 1)
        self.length = length
        self.alphabet = checked_alphabet(self.name, alphabet)

    def draw(self, rng: Random) -> tuple[str, str]:
        """A letter and a string, in which it may be missing."""
        return rng.choice(self.alphabet), "".join(rng.choices(self.alphabet, k=self.length))

    def pose(self, puzzle: tuple[str, str]) -> tuple[str, int]:
        """`count a:abca=`, or a sentence."""
        letter, word = puzzle
        if self.style == "bare":
            return f"count {letter}:{word}=", word.count(letter)
        return (
            f"How many times does the letter {letter} occur in {word}? Answer with the number only.",
            word.count(letter),
        )

    def longest_answer(self) -> int:
        """One number, and one character to end with."""
        return len(str(self.length)) + 1


class Copy(Generated):
    """Write `letters` letters again; the score is the share of them in their place (final)."""

    def __init__(self, letters: int = 5, alphabet: str = ALPHABET, **common: Any) -> None:
        super().__init__("copy", **common)
        at_least(self.name, "letters", letters, 1)
        self.letters = letters
        self.alphabet = checked_alphabet(self.name, alphabet)

    def draw(self, rng: Random) -> str:
        """The letters."""
        return "".join(rng.choices(self.alphabet, k=self.letters))

    def pose(self, puzzle: str) -> tuple[str, str]:
        """`copy:abcde=`, or a sentence."""
        if self.style == "bare":
            return f"copy:{puzzle}=", puzzle
        return f"Write the letters {puzzle} again, exactly as they are, and nothing else.", puzzle

    def longest_answer(self) -> int:
        """The letters, and one character to end with."""
        return self.letters + 1

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The share of the letters that are in their place, of all; in style `bare` what stands behind is not read."""
        word = problem.answer
        written = completion[: len(word)] if self.style == "bare" else completion.strip()
        share = sum(x == y for x, y in zip(written, word, strict=False)) / max(len(word), len(written))
        if share == 1.0:
            return RIGHT
        return Verdict(share, "partial") if share else WRONG

    def gold(self, problem: Problem) -> str:
        """The letters."""
        return problem.answer

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The letters among spaces, or in style `bare` with more behind."""
        bare = self.style == "bare"
        return {"more behind": f"{problem.answer}\n"} if bare else super().equivalents(problem, rng)

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """One letter changed, missing, too many or in another place."""
        word, place = problem.answer, rng.randrange(len(problem.answer))
        other = rng.choice([letter for letter in self.alphabet if letter != word[place]])
        misses = {
            "letter changed": f"{word[:place]}{other}{word[place + 1 :]}",
            "letter missing": f"{word[:place]}{word[place + 1 :]}",
            "reversed": word[::-1],
        }
        if self.style == "words":
            misses |= {"letter too many": f"{word}{other}", "twice": f"{word}{word}"}
        return {name: text for name, text in misses.items() if text != word}

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str:
        """Every letter moved on in the alphabet, so that none is in its place."""
        step = rng.randrange(1, len(self.alphabet))
        return "".join(
            self.alphabet[(self.alphabet.index(letter) + step) % len(self.alphabet)] for letter in problem.answer
        )


def checked_alphabet(task: str, alphabet: str) -> str:
    """The alphabet, if it has two or more different letters."""
    if len(alphabet) < 2 or len(set(alphabet)) < len(alphabet):
        raise UsageError(f"{task}: alphabet must hold two or more letters, each once, not {alphabet!r}")
    return alphabet
