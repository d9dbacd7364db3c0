"""A language task of my own: questions with a verifier that says what an answer is worth.

    operant tasks show my_task:MyTask            some of its problems
    operant tasks validate my_task:MyTask        does the verifier tell right from wrong?
    operant check --contract my_task:MyTask      does a run on it keep what Operant promises?
    operant train my_task.yaml                   trains a tiny model from scratch on it

In a spec it is named by its module and class (env.name: my_task:MyTask), and `env.text.arguments` are the arguments
of `__init__`. For a pretrained model name one in `agent.model`; see `operant help model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict

EVERY = 5


class MyTask(Task):
    """Add two digits: `3+4=` is answered by `7`."""

    # A verdict takes microseconds and runs nobody's code, so it is given in the training process itself. Without this
    # line answers are verified in worker processes, with a time limit of SECONDS each.
    QUICK = True

    def __init__(self, largest: int = 4) -> None:
        self.name, self.largest = "my_task", largest

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split: always the same in the same order, and none of them in both splits."""
        digits = range(self.largest + 1)
        pairs = [(a, b) for a in digits for b in digits]
        chosen = [pair for number, pair in enumerate(pairs) if (number % EVERY == 0) == (split == "eval")]
        return [self._problem(split, a, b) for a, b in chosen]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Right if the answer is the sum, written as a number and nothing else."""
        answer = completion.strip()
        if not answer.isdecimal():
            return UNPARSED
        # Part of the score may be given too: Verdict(0.5, "partial", note="off by one").
        return RIGHT if int(answer) == problem.answer else WRONG

    def gold(self, problem: Problem) -> str:
        """An answer that `verify` must count as right; a warm-up on such answers may come before training."""
        return str(problem.answer)

    def _problem(self, split: str, a: int, b: int) -> Problem:
        """`id` is unique and stays the same, `answer` is never shown, and `max_tokens` ends an answer."""
        return Problem(f"my_task/{split}/{a}+{b}", self.name, f"{a}+{b}=", a + b, stop=("\n",), max_tokens=4)
