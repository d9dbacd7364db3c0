"""IFEval: prompts with instructions whose following a program can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal

from operant.envs.text.instruction_examples import breaking, keeping
from operant.envs.text.instructions import CHECKS, followed
from operant.envs.text.sources import Row, find_file, in_share, read_rows
from operant.envs.text.task import Problem, Task, Verdict
from operant.errors import UsageError


class IfEval(Task):
    """Follow instructions: ifeval/input_data.jsonl, 541 prompts (final).

    The score is 1 if all instructions of a prompt are followed, else 0; `parts` holds the share that was followed.
    The set is for evaluation; `train_share` takes a share of it, by a hash of the prompt, for training instead.
    """

    QUICK = True

    def __init__(self, data: str | None = None, train_share: float = 0.0, max_tokens: int = 2048) -> None:
        self.name = "ifeval"
        self.data = data
        self.train_share = train_share
        self.max_tokens = max_tokens

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The prompts of a split."""
        if split == "train" and not self.train_share:
            raise UsageError(
                "ifeval: the set is for evaluation, so there is nothing to train on",
                remedy="give a share of its prompts for training: train_share: 0.5",
            )
        path = find_file(self.name, "ifeval", "input_data.jsonl", self.data)
        rows = (row for row in read_rows(path) if in_share(row["prompt"], self.train_share) == (split == "train"))
        return [self._problem(split, str(path), row) for row in rows]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """All instructions followed, or not."""
        kept = [followed(name, completion, arguments) for name, arguments in problem.answer]
        share = sum(kept) / len(kept)
        if share == 1.0:
            return Verdict(1.0, "right", {"instructions": 1.0})
        missed = ", ".join(name for (name, _), ok in zip(problem.answer, kept, strict=True) if not ok)
        return Verdict(0.0, "wrong", {"instructions": share}, note=f"not followed: {missed}")

    def gold(self, problem: Problem) -> str | None:
        """A text that does nothing but follow the one instruction; several at once are nobody's example."""
        return keeping(*problem.answer[0]) if len(problem.answer) == 1 else None

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str:
        """A text that breaks one of the instructions."""
        del other
        return breaking(*rng.choice(problem.answer))

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """One too few or too many of what each instruction asks for, by the instruction."""
        del rng
        return {name: breaking(name, arguments) for name, arguments in problem.answer}

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Nothing at all; any other text that does what is asked has earned it."""
        del problem
        return {"nothing": "", "spaces": " \n\t "}

    def _problem(self, split: str, path: str, row: Row) -> Problem:
        for instruction in row["instruction_id_list"]:
            if instruction not in CHECKS:
                raise UsageError(f"there is no instruction {instruction!r}", place=f"{path}, key {row['key']}")
        return Problem(
            id=f"{self.name}/{split}/{row['key']}",
            task=self.name,
            prompt=row["prompt"],
            answer=list(zip(row["instruction_id_list"], row["kwargs"], strict=True)),
            max_tokens=self.max_tokens,
        )
