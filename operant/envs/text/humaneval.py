"""humaneval: 164 Python functions to complete from signature and docstring (Chen et al. 2021); for evaluation only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Literal

from operant.envs.sandbox import require_sandbox
from operant.envs.text.code import Checks, runs_through, verify_program
from operant.envs.text.code_extract import completed_program
from operant.envs.text.program_forms import changed_programs, program_cheats, program_forms
from operant.envs.text.sources import Row, find_file, read_rows
from operant.envs.text.task import UNPARSED, Problem, Task, Verdict
from operant.errors import UsageError

FILE = "HumanEval.jsonl.gz"
# Nothing that could stand before the function in an answer which gives it whole, such as an import or a helper.
STOP = ("\nprint(", "\nassert ", "\nif __name__")


class HumanEval(Task):
    """Functions to complete (final)."""

    SECONDS = 30.0

    def __init__(self, data: str | None = None) -> None:
        require_sandbox()
        self.name = "humaneval"
        self.data = data

    @cached_property
    def _rows(self) -> list[Row]:
        return read_rows(find_file(self.name, "humaneval", FILE, self.data))

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """All problems, for `eval`."""
        if split == "train":
            raise UsageError("humaneval has no training problems: it is for evaluation only", remedy="train on mbpp")
        return [self._problem(row) for row in self._rows]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Right if the completed function passes the problem's check."""
        return (
            verify_program(program_of(problem, completion), checks_of(problem.answer))
            if completion.strip()
            else UNPARSED
        )

    def gold(self, problem: Problem) -> str:
        """The authors' solution, which goes on where the prompt ends."""
        return problem.answer["canonical_solution"]

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The whole function, in the forms of a program, and the rest of it in a fence."""
        del rng
        rest = self.gold(problem)
        whole = program_forms(f"{problem.prompt}{rest}")
        kept = {
            name: text for name, text in whole.items() if "mark" not in name and name not in ("prints", "its own main")
        }
        return {**kept, "the rest in a fence": f"```python\n{rest}\n```", "words behind": f"{rest}\n\nThat is all."}

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The whole function with one thing changed."""
        return changed_programs(f"{problem.prompt}{self.gold(problem)}", rng)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Programs that try to pass without being right."""
        return {**super().cheats(problem), **program_cheats(problem.answer["entry_point"])}

    def right_after_all(self, problem: Problem, answer: str) -> bool:
        """Some solutions may pass the check of more than their own problem."""
        return runs_through(program_of(problem, answer), checks_of(problem.answer))

    def _problem(self, row: Row) -> Problem:
        number = row["task_id"].rpartition("/")[2]
        return Problem(id=f"{self.name}/eval/{number}", task=self.name, prompt=row["prompt"], answer=row, stop=STOP)


def program_of(problem: Problem, completion: str) -> str:
    """The function that the prompt begins, completed."""
    return completed_program(problem.answer["prompt"], problem.answer["entry_point"], completion)


def checks_of(row: Row) -> Checks:
    """The check of a row. Other functions of the prompt are run outside: a check may use them as its measure."""
    entry = row["entry_point"]
    return Checks((entry,), (row["test"], f"check({entry})"), row["prompt"])
