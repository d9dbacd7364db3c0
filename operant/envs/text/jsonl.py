"""Problems of one's own: a JSONL file, and a verifier by name or by import path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Literal

from operant.envs.text.algebra import ALGEBRA
from operant.envs.text.competition import same_answer
from operant.envs.text.latex import LONGEST_ANSWER, final_answer
from operant.envs.text.latex_forms import latex_cheats, latex_forms, latex_near_misses
from operant.envs.text.number_forms import number_cheats, number_forms, number_near_misses
from operant.envs.text.numbers import last_number, value
from operant.envs.text.sources import Row, file_at, in_share, read_rows
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict, without_question
from operant.envs.text.word_problems import given_answer, same_number
from operant.errors import UsageError
from operant.registry import load

Verifier = Callable[[str, Any], "Verdict | float | bool"]


def exact(completion: str, answer: Any) -> Verdict:
    """The whole text, but for the spaces around it."""
    return RIGHT if completion.strip() == str(answer).strip() else WRONG


def number(completion: str, answer: Any) -> Verdict:
    """The number after ####, in a box, after "the answer is", else the last one."""
    return same_number(given_answer(completion), answer)


def closing_number(completion: str, answer: Any) -> Verdict:
    """The last number of the text."""
    return same_number(last_number(completion), answer)


def latex(completion: str, answer: Any) -> Verdict:
    """The final answer in LaTeX, compared as the task `math` does."""
    found = final_answer(completion)
    if found is None:
        return UNPARSED
    return same_answer(str(answer), found) if len(found) <= LONGEST_ANSWER else WRONG


VERIFIERS: dict[str, Verifier] = {"exact": exact, "number": number, "last_number": closing_number, "math": latex}
NUMBERS = ("number", "last_number")


class JsonlTask(Task):
    """The rows of a JSONL file of one's own (final).

    `prompt`, `answer`, `id` and `system` name its fields; the last two may be missing. Problems for evaluation are in
    `eval_path`, or else they are the share `eval_share` of `path`, chosen by `seed` and the prompt. `verifier` is
    exact, number, last_number, math, or `module:function`, called as function(completion, answer), which returns
    a score from 0 to 1 (or a Verdict); it runs in worker processes.
    """

    def __init__(
        self,
        path: str,
        eval_path: str | None = None,
        eval_share: float = 0.1,
        seed: int = 0,
        verifier: str = "exact",
        prompt: str = "prompt",
        answer: str = "answer",
        id: str = "id",
        system: str = "system",
        stop: Sequence[str] = (),
        max_tokens: int = 512,
    ) -> None:
        self.name = Path(path).name.split(".")[0]
        self.paths = {"train": path, "eval": eval_path}
        self.eval_share = eval_share
        self.seed = seed
        self.fields = {"prompt": prompt, "answer": answer, "id": id, "system": system}
        self.stop = (stop,) if isinstance(stop, str) else tuple(stop)
        self.max_tokens = max_tokens
        self.verifier = verifier
        if ":" not in verifier and verifier not in VERIFIERS:
            near = get_close_matches(verifier, VERIFIERS, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"{', '.join(VERIFIERS)}, or module:function"
            raise UsageError(f"jsonl: there is no verifier {verifier!r}", remedy=remedy)

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The rows of a split, in the order of the file."""
        own = self.paths["eval"] if split == "eval" else None
        rows = self._rows(str(own or self.paths["train"]))
        if self.paths["eval"] is None:
            rows = [row for row in rows if in_share(row[1].prompt, self.eval_share, self.seed) == (split == "eval")]
        problems = [self._named(split, key, problem) for key, problem in rows]
        if len({problem.id for problem in problems}) < len(problems):
            raise UsageError(f"two rows have the same {self.fields['id']}", place=str(own or self.paths["train"]))
        return problems

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """What the verifier says."""
        named = self.verifier == "math" or self.verifier in NUMBERS
        said = self._verifier(without_question(problem, completion) if named else completion, problem.answer)
        if isinstance(said, Verdict):
            return said
        score = float(said)
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"{self.verifier} returned {said!r}, which is no score from 0 to 1")
        return RIGHT if score == 1.0 else Verdict(score, "partial") if score else WRONG

    def gold(self, problem: Problem) -> str | None:
        """The answer as it stands in the file, for the named verifiers; a function may want something else."""
        if ":" in self.verifier:
            return None
        return f"$\\boxed{{{problem.answer}}}$" if self.verifier == "math" else str(problem.answer)

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another row's answer, unless it is the same, or the same number."""
        mine, theirs = (value(str(each.answer)) if self.verifier in NUMBERS else None for each in (problem, other))
        return None if mine is not None and mine == theirs else super().wrong(problem, other, rng)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The answer in other forms, as the named verifier reads it."""
        if self.verifier == "math":
            return latex_forms(str(problem.answer))
        right = value(str(problem.answer)) if self.verifier in NUMBERS else None
        return number_forms(right, self.verifier == "number") or super().equivalents(problem, rng)

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other answers."""
        if self.verifier == "math":
            return latex_near_misses(str(problem.answer), rng)
        if self.verifier == "exact":
            return {"more behind": f"{problem.answer} and more", "more before": f"So {problem.answer}"}
        right = value(str(problem.answer)) if self.verifier in NUMBERS else None
        return number_near_misses(right, rng, self.verifier == "number")

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No answer, or any."""
        further = latex_cheats if self.verifier == "math" else number_cheats if self.verifier in NUMBERS else None
        return {**super().cheats(problem), **(further(problem.prompt) if further else {})}

    def prepare(self) -> None:
        """Import the verifier."""
        _ = self._verifier

    def start(self) -> None:
        """Start the process of sympy, where it is needed."""
        if self._verifier is latex:
            ALGEBRA.start()

    @cached_property
    def _verifier(self) -> Verifier:
        named = VERIFIERS.get(self.verifier)
        return named or load(self.verifier, f"the verifier of {self.paths['train']}")

    def _rows(self, path: str) -> list[tuple[str, Problem]]:
        found = file_at(path)
        if found is None:
            raise UsageError(f"{path}: there is no such file", remedy="jsonl: path: FILE, one JSON object a line")
        return [self._row(path, number, row) for number, row in enumerate(read_rows(found))]

    def _row(self, path: str, number: int, row: Row) -> tuple[str, Problem]:
        for needed in ("prompt", "answer"):
            if self.fields[needed] not in row:
                raise UsageError(
                    f"row {number + 1} has no field {self.fields[needed]!r}; it has {', '.join(row)}",
                    place=path,
                    remedy=f"say which field it is: {needed}: {next(iter(row), 'NAME')}",
                )
        problem = Problem(
            id="",
            task=self.name,
            prompt=str(row[self.fields["prompt"]]),
            answer=row[self.fields["answer"]],
            system=row.get(self.fields["system"]),
            stop=self.stop,
            max_tokens=self.max_tokens,
        )
        return str(row.get(self.fields["id"], number)), problem

    def _named(self, split: str, key: str, problem: Problem) -> Problem:
        return replace(problem, id=f"{self.name}/{split}/{key}")
