"""More mathematics to train on: DeepScaleR, the mixed set of Tulu 3, and one question again and again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

from operant.envs.text.algebra import ALGEBRA
from operant.envs.text.competition import STOP, same_answer
from operant.envs.text.dataset import DatasetTask, user_message
from operant.envs.text.instruction_sets import example, ground_truth, verified_instruction
from operant.envs.text.latex import final_answer
from operant.envs.text.latex_forms import latex_cheats, latex_forms, latex_near_misses
from operant.envs.text.number_forms import number_cheats, number_forms, number_near_misses
from operant.envs.text.numbers import last_number, value
from operant.envs.text.sources import Row
from operant.envs.text.task import UNPARSED, Problem, Task, Verdict, without_question
from operant.envs.text.word_problems import same_number
from operant.errors import UsageError

SHOTS = 4
LENGTHS = {"gsm8k": 512, "math": 1024, "ifeval": 2048}


class LatexTask(Task):
    """A task whose answers are formulas in LaTeX (abstract)."""

    SECONDS = 300.0  # sympy has a limit of its own, far below this

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The answer that the text ends with, compared as in `math`."""
        return verified_math(problem.answer, without_question(problem, completion))

    def gold(self, problem: Problem) -> str:
        """The answer in a box."""
        return boxed(problem.answer)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The answer in other forms."""
        del rng
        return latex_forms(problem.answer)

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other answers."""
        return latex_near_misses(problem.answer, rng)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No answer, or any."""
        return {**super().cheats(problem), **latex_cheats(problem.prompt)}

    def start(self) -> None:
        """Start the process of sympy, which takes a second or more."""
        ALGEBRA.start()


class DeepScaler(LatexTask, DatasetTask):
    """Competition mathematics: deepscaler/train.jsonl, rows with `problem` and `answer` in LaTeX (final)."""

    def __init__(self, max_tokens: int = 1024, **common: Any) -> None:
        super().__init__("deepscaler", **common)
        self.max_tokens = max_tokens

    def problem(self, id: str, row: Row) -> Problem:
        """A problem, asked as those of `math` are."""
        prompt = f"Problem:\n{row['problem'].strip()}\n\nSolution:"
        return Problem(id, self.name, prompt, str(row["answer"]), stop=STOP, max_tokens=self.max_tokens)


class OneQuestion(LatexTask):
    """One question in `samples` copies: whether a reward can rise at all (final)."""

    ONE_SPLIT = True

    def __init__(
        self,
        question: str = "\n\nProblem:What is ((7/12) + (5/18)) / (31/36)?",
        answer: str = "1",
        samples: int = 64,
        max_tokens: int = 512,
    ) -> None:
        if samples < 1:
            raise UsageError(f"one_question: samples is {samples}", remedy="1 or more")
        self.name = "one_question"
        self.question, self.answer, self.samples, self.max_tokens = question, answer, samples, max_tokens

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The same question so often; once for evaluation, where it is asked too."""
        ids = [f"{self.name}/{split}/{index}" for index in range(self.samples if split == "train" else 1)]
        return [Problem(id, self.name, self.question, self.answer, max_tokens=self.max_tokens) for id in ids]

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str:
        """Another answer in a box."""
        del other
        return boxed(f"{problem.answer}{rng.randint(2, 99)}")


class AllenaiRlvr(DatasetTask):
    """The set of Tulu 3: gsm8k, MATH and instructions: allenai_rlvr/train.jsonl (final).

    A row has `messages` (or `prompt`), `ground_truth` and `dataset`: gsm8k, MATH or ifeval. `datasets` keeps some of
    the three, and `samples` so many rows of them, drawn by `seed`. Word problems are asked with the first four of their
    examples as `Q: ... A:`.
    """

    SECONDS = 300.0

    def __init__(
        self, datasets: Sequence[str] | None = None, samples: int | None = None, seed: int = 42, **common: Any
    ) -> None:
        super().__init__("allenai_rlvr", **common)
        self.datasets = None if datasets is None else {each.lower() for each in datasets}
        self.samples, self.seed = samples, seed

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split; for training as many as were asked for."""
        found = super().problems(split)
        if split == "eval" or self.samples is None:
            return found
        return Random(self.seed).sample(found, min(self.samples, len(found)))

    def problem(self, id: str, row: Row) -> Problem | None:
        """A word problem, a problem in LaTeX, or an instruction."""
        kind = str(row["dataset"]).lower()
        if kind not in LENGTHS:
            raise ValueError(f"dataset {row['dataset']!r} is none of gsm8k, MATH, ifeval")
        if self.datasets is not None and kind not in self.datasets:
            return None
        prompt, truth = user_message(row), ground_truth(row) if kind == "ifeval" else str(row["ground_truth"])
        answer = {"kind": kind, "truth": truth}
        if kind == "gsm8k":
            return Problem(id, self.name, few_shots(prompt), answer, prefix="A:", max_tokens=LENGTHS[kind])
        return Problem(id, self.name, prompt, answer, max_tokens=LENGTHS[kind])

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """By the kind of the row: the last number, the final answer in LaTeX, or the instruction."""
        kind, truth = problem.answer["kind"], problem.answer["truth"]
        if kind == "ifeval":
            return verified_instruction(truth, completion)
        completion = without_question(problem, completion)
        return verified_math(truth, completion) if kind == "math" else same_number(last_number(completion), truth)

    def gold(self, problem: Problem) -> str | None:
        """The answer alone, as its kind is read."""
        kind, truth = problem.answer["kind"], problem.answer["truth"]
        if kind == "ifeval":
            return example(truth, right=True)
        return boxed(truth) if kind == "math" else f"A: The answer is {truth}."

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another answer of the same kind, or a text that does not do what is asked."""
        if problem.answer["kind"] == "ifeval":
            return example(problem.answer["truth"], right=False)
        return super().wrong(problem, other, rng) if other.answer["kind"] == problem.answer["kind"] else None

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The answer in other forms, where it is a number or a formula."""
        kind, truth = problem.answer["kind"], problem.answer["truth"]
        if kind == "ifeval":
            return super().equivalents(problem, rng)
        return latex_forms(truth) if kind == "math" else number_forms(value(truth), marked=False)

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other numbers and formulas."""
        kind, truth = problem.answer["kind"], problem.answer["truth"]
        if kind == "ifeval":
            return super().near_misses(problem, rng)
        return latex_near_misses(truth, rng) if kind == "math" else number_near_misses(value(truth), rng, marked=False)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No answer, or any; whatever does what an instruction asks has earned it."""
        if problem.answer["kind"] == "ifeval":
            return {"nothing": "", "spaces": " \n\t "}
        further = latex_cheats if problem.answer["kind"] == "math" else number_cheats
        return {**super().cheats(problem), **further(problem.prompt)}

    def start(self) -> None:
        """Start the process of sympy, where there are formulas."""
        if self.datasets is None or "math" in self.datasets:
            ALGEBRA.start()


def verified_math(truth: str, completion: str) -> Verdict:
    """Whether a text ends with an answer."""
    found = final_answer(completion)
    return UNPARSED if found is None else same_answer(truth, found)


def boxed(answer: str) -> str:
    """An answer as it is read for certain."""
    return f" $\\boxed{{{answer}}}$"


def few_shots(prompt: str) -> str:
    """A prompt of examples and a question in lm_eval's words, with the first four of the examples."""
    words = {"Question:": "Q:", "Answer:": "A:", "So the answer is": "The answer is"}
    for theirs, ours in words.items():
        prompt = prompt.replace(theirs, ours)
    parts = [part for part in re.split(r"(?=Q:)", prompt) if part.strip()]
    return "".join([*parts[:SHOTS], parts[-1]]) if len(parts) > SHOTS + 1 else prompt
