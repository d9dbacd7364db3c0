"""Any dataset of the package reasoning-gym, with its own problems and its own verifier."""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, cached_property
from importlib import import_module
from random import Random
from typing import Any, Literal

from operant.envs.text.number_forms import other_numbers, plain
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict, failed
from operant.errors import UsageError
from operant.install import missing_package

# Verifiers of the package that pay for what is not an answer, found by `operant tasks validate`.
UNSOUND = {
    "game_of_life_halting": "any text at all counts as right where the answer is yes",
    "puzzle24": "numbers other than the given ones are accepted",
}
# Datasets that walk through sets of strings, so that their problems change with Python's hash seed.
HASHED = ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
# What verifying an answer never needs. Some verifiers hand it to sympy's parser, which calls any function it names.
FORBIDDEN = ("os.", "subprocess.", "shutil.", "socket.", "ctypes.", "pty.", "webbrowser.", "urllib.")

ASKED = "\nGive the final answer between <answer> and </answer>."


class ReasoningGym(Task):
    """The reasoning-gym dataset `dataset`; `config` are its own settings (final).

    Its problems are made from seed + index, so training takes the seeds from `seed` on and evaluation those that
    follow; a question for evaluation that also occurs in training is left out. `partial` keeps scores between 0
    and 1, where the dataset gives them; otherwise only a full score counts.
    """

    SECONDS = 20.0

    def __init__(
        self,
        dataset: str = "leg_counting",
        size: int = 1_000,
        eval_size: int = 200,
        seed: int = 0,
        partial: bool = False,
        max_tokens: int = 1024,
        config: dict[str, Any] | None = None,
    ) -> None:
        self.name = "reasoning_gym"
        self.dataset = dataset
        self.size, self.eval_size, self.seed = size, eval_size, seed
        self.partial = partial
        self.max_tokens = max_tokens
        self.config = config or {}
        _known(dataset)

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split."""
        train = [self._problem("train", index) for index in range(self.size)]
        if split == "train":
            return train
        asked = {problem.prompt for problem in train}
        found = (self._problem("eval", index) for index in range(self.eval_size))
        return [problem for problem in found if problem.prompt not in asked]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The score that the dataset gives to what stands between the last <answer> tags."""
        if (found := tagged_answer(completion)) is None:
            return UNPARSED
        with deeds_forbidden():
            score = float(self._gym.score_answer(answer=found, entry=problem.answer["entry"]))
        if not math.isfinite(score):
            return failed(f"{self.dataset} scores this {score}")
        if score >= 1.0:
            return RIGHT
        return Verdict(score, "partial") if self.partial and score > 0.0 else WRONG

    def gold(self, problem: Problem) -> str | None:
        """The dataset's own answer, in tags; some datasets have none."""
        return None if problem.answer["answer"] is None else f"<answer>{problem.answer['answer']}</answer>"

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another problem's answer, unless it is the same."""
        del rng
        return None if problem.answer["answer"] == other.answer["answer"] else self.gold(other)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The answer after thoughts, among spaces, and after another one that was taken back."""
        del rng
        answer = problem.answer["answer"]
        if answer is None:
            return {}
        return {
            "spaces around": f"<answer>\n  {answer}\n</answer>\n",
            "after thoughts": f"<think>It may be 3.</think>\n<answer>{answer}</answer>",
            "the last one counts": f"<answer>nothing yet</answer> No: <answer>{answer}</answer>",
            "words behind": f"<answer>{answer}</answer>\nThat is all.",
            "not closed": f"<answer>{answer}",
        }

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other numbers, where the answer is one, and the answer taken back."""
        answer = problem.answer["answer"]
        if answer is None or not re.fullmatch(r"-?[0-9]+", str(answer)):
            return {}
        others = other_numbers(Decimal(answer), rng)
        near = {name: f"<answer>{plain(value)}</answer>" for name, value in others.items()}
        return {**near, "taken back": f"<answer>{answer}</answer> No: <answer>{int(answer) + 1}</answer>"}

    def prepare(self) -> None:
        """Make the dataset, which some take long over."""
        _ = self._gym

    def _problem(self, split: Literal["train", "eval"], index: int) -> Problem:
        place = index if split == "train" else self.size + index
        entry = self._gym[place]  # kept with the problem: some datasets make another one in another process
        return Problem(
            id=f"{self.name}/{split}/{self.dataset}/{index}",
            task=self.name,
            prompt=f"{entry['question']}{ASKED}",
            answer={"answer": entry["answer"], "entry": entry},
            max_tokens=self.max_tokens,
            seed=self.seed + place,
        )

    @cached_property
    def _gym(self) -> Any:
        try:
            size = self.size + self.eval_size
            return _package().create_dataset(self.dataset, seed=self.seed, size=size, **self.config)
        except (AssertionError, TypeError, ValueError) as problem:
            raise UsageError(f"reasoning_gym: {self.dataset} refuses these settings: {problem}") from problem


_verifying = threading.local()


@contextmanager
def deeds_forbidden() -> Iterator[None]:
    """While this holds, this thread can change no file and start no program: such an attempt raises PermissionError.

    A guard against the text of an answer that turns out to be code, not a wall against one who knows of it.
    """
    _watch_deeds()
    _verifying.now = True
    try:
        yield
    finally:
        _verifying.now = False


@cache
def _watch_deeds() -> None:
    sys.addaudithook(_refuse_deeds)


def _refuse_deeds(event: str, details: tuple[Any, ...]) -> None:
    if not getattr(_verifying, "now", False):
        return
    writes = event == "open" and isinstance(details[1], str) and any(letter in details[1] for letter in "wax+")
    if writes or (event.startswith(FORBIDDEN) and event not in ("os.listdir", "os.scandir")):
        raise PermissionError(f"an answer tried to {event}")


def tagged_answer(text: str) -> str | None:
    """What stands after the last <answer> and before the tag that closes it, or None."""
    _, tag, after = text.rpartition("<answer>")
    return after.partition("</answer>")[0].strip() if tag else None


def _known(dataset: str) -> None:
    if dataset in UNSOUND:
        raise UsageError(f"reasoning_gym: the verifier of {dataset} is not sound: {UNSOUND[dataset]}")
    if dataset in HASHED and not os.environ.get("PYTHONHASHSEED", "").isdigit():
        raise UsageError(
            f"reasoning_gym: {dataset} makes other problems in every process unless Python's hash seed is fixed",
            remedy="export PYTHONHASHSEED=0",
        )
    names = _package().factory.DATASETS
    if dataset not in names:
        near = get_close_matches(dataset, names, n=3, cutoff=0.4)
        raise UsageError(
            f"reasoning_gym: there is no dataset {dataset!r}",
            remedy=f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(sorted(names))}",
        )


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # packages that it needs compare with `is`
            return import_module("reasoning_gym")
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "reasoning_gym", "task reasoning_gym") from missing
