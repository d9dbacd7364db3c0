"""mbpp: short Python functions with three tests each (Austin et al. 2021), asked for as in the paper."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from random import Random
from typing import Literal

from operant.envs.sandbox import require_sandbox
from operant.envs.text.code import Checks, runs_through, verify_program
from operant.envs.text.code_extract import BEGIN, DONE, whole_program
from operant.envs.text.program_forms import changed_programs, program_cheats, program_forms
from operant.envs.text.sources import Row, find_file, read_rows
from operant.envs.text.task import UNPARSED, Problem, Task, Verdict

FULL, SANITISED = "mbpp.jsonl", "sanitized-mbpp.json"
SHOWN_TESTS = 3
# The authors' own ranges of task_id; the first ten are meant as examples in prompts.
SPLITS = {"prompt": range(1, 11), "eval": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}


class Mbpp(Task):
    """Python functions described in a sentence (final). `sanitized` takes the 427 that were checked by hand."""

    SECONDS = 30.0

    def __init__(self, data: str | None = None, sanitized: bool = False) -> None:
        require_sandbox()
        self.name = "mbpp"
        self.data = data
        self.sanitized = sanitized

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of the authors' training or test range."""
        return [problem for problem in self.every if problem.answer["split"] == split]

    @cached_property
    def every(self) -> list[Problem]:
        """All problems, also those for prompts and validation."""
        file = SANITISED if self.sanitized else FULL
        rows = read_rows(find_file(self.name, "mbpp", file, self.data))
        return [self._problem(row) for row in sorted(rows, key=lambda row: row["task_id"])]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Right if the program passes every test of the problem."""
        program = whole_program(completion)
        return verify_program(program, Checks(**problem.answer["checks"])) if program.strip() else UNPARSED

    def gold(self, problem: Problem) -> str:
        """The authors' solution."""
        return problem.answer["code"].replace("\r\n", "\n") + "\n"

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another problem's solution under this one's name, so that it is wrong by what it does."""
        del rng
        (*_, ours), (*_, theirs) = problem.answer["checks"]["names"], other.answer["checks"]["names"]
        return None if ours == theirs else f"{self.gold(other)}\n{ours} = {theirs}\n"

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The solution in other forms."""
        del rng
        return program_forms(self.gold(problem))

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The solution with one thing changed."""
        return changed_programs(self.gold(problem), rng)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Programs that try to pass without being right."""
        return {**super().cheats(problem), **program_cheats(problem.answer["checks"]["names"][-1])}

    def right_after_all(self, problem: Problem, answer: str) -> bool:
        """Some problems are asked twice in other words, and some solutions pass the tests of more than their own."""
        return runs_through(answer, Checks(**problem.answer["checks"]))

    def _problem(self, row: Row) -> Problem:
        split = next(name for name, ids in SPLITS.items() if row["task_id"] in ids)
        return Problem(
            id=f"{self.name}/{split}/{row['task_id']}",
            task=self.name,
            prompt=prompt_of(row),
            answer={"split": split, "code": row["code"], "checks": asdict(checks_of(row))},
            stop=(DONE,),
        )


def prompt_of(row: Row) -> str:
    """The wording of the paper, which lm_eval uses too."""
    text = row["text"] if "text" in row else row["prompt"]
    tests = "\n".join(row["test_list"][:SHOWN_TESTS])
    head = "You are an expert Python programmer, and here is your task:"
    return f"{head} {text} Your code should pass these tests:\n\n{tests}\n{BEGIN}\n"


def checks_of(row: Row) -> Checks:
    """The tests of a row. What they use of the solution's imports is imported for them, outside."""
    tests = tuple(test for test in (row.get("test_setup_code", ""), *row["test_list"]) if test.strip())
    used = {node.id for test in tests for node in ast.walk(parsed(test)) if isinstance(node, ast.Name)}
    solution = parsed(row["code"]).body
    names = [node.name for node in solution if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in used]
    imports = [ast.unparse(node) for node in solution if isinstance(node, ast.Import) and node.names[0].name in used]
    return Checks(tuple(dict.fromkeys(names)), tests, "\n".join([*row.get("test_imports", []), *imports]))


def parsed(source: str) -> ast.Module:
    """The syntax of a solution; many write a pattern as a plain string, which Python would warn of each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
