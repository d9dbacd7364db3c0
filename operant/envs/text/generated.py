"""Procedural tasks: problems made from their index, in two styles of asking.

Train and eval share no problem by construction. A problem is made from a puzzle (its numbers or letters), and a
puzzle belongs to `eval` if a hash of its content says so, about one in `EVAL_EVERY`; a draw that falls into the
other split is thrown away. So a puzzle is never in both splits, whatever the seed and the sizes, and the splits
stay apart between runs with different arguments.

`style: words` asks in a sentence, for models that follow instructions; `style: bare` writes the shortest
possible question, such as "12+34=", after which the answer must follow at once, for a model that reads bytes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random
from typing import Any, ClassVar, Literal, overload

from operant.envs.text.task import Problem, Task
from operant.errors import UsageError

EVAL_EVERY = 8
MOST_DRAWS = 5_000

Split = Literal["train", "eval"]
Style = Literal["words", "bare"]


class Generated(Task):
    """A task whose problems are drawn (abstract); `size` and `eval_size` say how many, `seed` which."""

    QUICK = True
    BARE_STOP: ClassVar[tuple[str, ...]] = ("\n",)

    def __init__(
        self,
        name: str,
        style: Style = "words",
        size: int = 10_000,
        eval_size: int = 200,
        seed: int = 0,
        max_tokens: int | None = None,
    ) -> None:
        if style not in ("words", "bare"):
            raise UsageError(f"{name}: there is no style {style!r}", remedy="style: words, or style: bare")
        for what, number in (("size", size), ("eval_size", eval_size), ("max_tokens", max_tokens or 1)):
            at_least(name, what, number, 1)
        self.name = name
        self.style: Style = style
        self.sizes: dict[Split, int] = {"train": size, "eval": eval_size}
        self.seed = seed
        self.max_tokens = max_tokens

    @abstractmethod
    def draw(self, rng: Random) -> Any:
        """A puzzle: plain data that says all there is to say about a problem."""

    @abstractmethod
    def pose(self, puzzle: Any) -> tuple[str, Any]:
        """The question in this task's style, and what the verifier needs to know."""

    def longest_answer(self) -> int:
        """How many characters an answer in style `bare` may need."""
        return 12

    def key(self, puzzle: Any) -> str:
        """What makes two puzzles the same; those with one key always lie in one split."""
        return repr(puzzle)

    def problems(self, split: Split) -> Sequence[Problem]:
        """The problems of a split, each made when it is asked for."""
        return Drawn(self, split)

    def problem(self, split: Split, index: int) -> Problem:
        """The problem with this index, a pure function of the arguments."""
        prompt, answer = self.pose(self._puzzle(split, index))
        bare = self.style == "bare"
        return Problem(
            id=f"{self.name}/{split}/{index}",
            task=self.name,
            prompt=prompt,
            answer=answer,
            stop=self.BARE_STOP if bare else (),
            max_tokens=self.max_tokens or (self.longest_answer() if bare else 64),
        )

    def _puzzle(self, split: Split, index: int) -> Any:
        rng = Random(f"{type(self).__name__}/{self.seed}/{split}/{index}")
        for _ in range(MOST_DRAWS):
            puzzle = self.draw(rng)
            if split_of(self.key(puzzle)) == split:
                return puzzle
        raise UsageError(
            f"{self.name}: these arguments allow so few different problems that none is left for {split}",
            remedy="make the problems larger: more digits, numbers or letters",
        )


class Drawn(Sequence[Problem]):
    """The problems of one split of a procedural task, made one by one (final)."""

    def __init__(self, task: Generated, split: Split) -> None:
        self.task = task
        self.split: Split = split

    def __len__(self) -> int:
        return self.task.sizes[self.split]

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> list[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | list[Problem]:
        if isinstance(index, slice):
            return [self.task.problem(self.split, i) for i in range(*index.indices(len(self)))]
        return self.task.problem(self.split, range(len(self))[index])

    def __iter__(self) -> Iterator[Problem]:
        return (self.task.problem(self.split, index) for index in range(len(self)))


def split_of(key: str) -> Split:
    """The split that a puzzle belongs to, by its content alone."""
    return "train" if blake2b(key.encode(), digest_size=4).digest()[0] % EVAL_EVERY else "eval"


def at_least(task: str, argument: str, number: int, least: int) -> None:
    """Refuse an argument that is too small."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise UsageError(f"{task}: {argument} must be a whole number of at least {least}, not {number!r}")
