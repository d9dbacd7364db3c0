"""APPS: programs that read standard input and write standard output, from competitions (Hendrycks et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from operant.envs.sandbox import SandboxDied, SandboxKilled, open_sandbox, require_sandbox, retried, sandbox_works
from operant.envs.text.code import LIMITS
from operant.envs.text.code_extract import whole_program
from operant.envs.text.dataset import DatasetTask
from operant.envs.text.instruction_sets import literal
from operant.envs.text.program_forms import changed_programs, program_cheats, program_forms
from operant.envs.text.sources import Row
from operant.envs.text.task import UNPARSED, Problem, Verdict, failed

SECONDS_PER_TEST = 3.0
FAILURES_IN_A_ROW = 3


class Apps(DatasetTask):
    """Programs for standard input: apps/train.jsonl (final).

    A row has `question`, `input_output` (an object of `inputs` and `outputs`, or its JSON), and may have `solutions`,
    `starter_code`, `difficulty` and `id`. Rows whose tests call a function (`fn_name`) are left out. The score is the
    share of the tests that pass; three failures in a row end them. `difficulty` keeps some of the three levels.
    """

    SECONDS = 300.0

    def __init__(self, difficulty: Sequence[str] | None = None, max_tokens: int = 512, **common: Any) -> None:
        require_sandbox()
        super().__init__("apps", **common)
        self.max_tokens = max_tokens
        self.difficulty = None if difficulty is None else set(difficulty)

    def problem(self, id: str, row: Row) -> Problem | None:
        """A question and its tests; None for other levels, and for tests that call a function."""
        tests = literal(row.get("input_output") or "{}")
        inputs, outputs = ([str(each) for each in tests.get(key) or ()] for key in ("inputs", "outputs"))
        other_level = self.difficulty is not None and row.get("difficulty") not in self.difficulty
        if other_level or "fn_name" in tests or not inputs or len(inputs) != len(outputs):
            return None
        starter = (row.get("starter_code") or "").strip()
        head = f"\n\nStarter code:\n```python\n{starter}\n```\n" if starter else ""
        solutions = literal(row.get("solutions") or "[]")
        answer = {"tests": list(zip(inputs, outputs, strict=True)), "solution": solutions[0] if solutions else None}
        return Problem(id, self.name, row["question"] + head, answer, max_tokens=self.max_tokens)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The share of the tests whose words come out; what is expected never goes in."""
        program = whole_program(completion)
        if not program.strip():
            return UNPARSED
        tests = problem.answer["tests"]
        try:
            share = retried(lambda: passed(program, tests), sandbox_works) / len(tests)
        except SandboxKilled as killed:
            return Verdict(0.0, "wrong", note=killed.cause)
        except SandboxDied as died:
            return failed(died.cause)
        return Verdict(share, "right" if share == 1 else "partial" if share else "wrong")

    def gold(self, problem: Problem) -> str | None:
        """The first of the solutions."""
        return problem.answer["solution"]

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str:
        """A program that runs, and prints what nobody expects."""
        del problem, other, rng
        return "print('qzx')\n"

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The solution in other forms."""
        del rng
        gold = self.gold(problem)
        kept = {} if gold is None else program_forms(gold)
        return {name: text for name, text in kept.items() if name not in ("prints", "its own main")}

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The solution with one thing changed, and what it prints with more behind."""
        gold = self.gold(problem)
        return {} if gold is None else {**changed_programs(gold, rng), "prints more": f"{gold}\nprint('more')\n"}

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Programs that try to pass without being right."""
        return {**super().cheats(problem), **program_cheats("main"), "reads the tests": READS}


READS = """import glob
for name in glob.glob('**/*', recursive=True) + glob.glob('/proc/*/environ'):
    try: print(open(name).read())
    except Exception: pass
"""


def passed(program: str, tests: Sequence[tuple[str, str]]) -> int:
    """How many tests a program passes, each in a process of its own, until three in a row fail."""
    count = failures = 0
    with open_sandbox(limits=LIMITS, files={"main.py": program.encode()}) as sandbox:
        for given, expected in tests:
            ran = sandbox.run([sandbox.python, "-I", "main.py"], stdin=given.encode(), seconds=SECONDS_PER_TEST)
            right = ran.code == 0 and ran.out.split() == expected.encode().split()
            count, failures = count + right, 0 if right else failures + 1
            if failures == FAILURES_IN_A_ROW:
                break
    return count
