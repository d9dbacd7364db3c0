"""Instruction following to train on: prompts with up to five constraints, or with one, each checked by a program."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from random import Random
from typing import Any

from operant.envs.text.constraint_examples import failing, following
from operant.envs.text.constraints import followed
from operant.envs.text.dataset import DatasetTask, user_message
from operant.envs.text.open_instruct import EXAMPLES, obeyed
from operant.envs.text.sources import Row
from operant.envs.text.task import RIGHT, WRONG, Problem, Verdict, no_gold

BAD_INSTRUCTION = (LookupError, TypeError, ValueError, AttributeError)  # an unknown one, or arguments of another's


class IfMultiConstraints(DatasetTask):
    """Follow up to five instructions at once: if_multi_constraints/train.jsonl (final).

    A row has `messages` (or `prompt`) and `ground_truth`: a list with one object of `instruction_id` and `kwargs`, as
    it is or as text. The score is the share of the instructions that are followed. What stands before </think> is not
    read.
    """

    QUICK = True

    def __init__(self, max_tokens: int = 2048, **common: Any) -> None:
        super().__init__("if_multi_constraints", **common)
        self.max_tokens = max_tokens

    def problem(self, id: str, row: Row) -> Problem:
        """A prompt and its instructions."""
        truth = literal(row["ground_truth"])
        truth = literal(truth[0]) if isinstance(truth, list) else truth
        pairs = list(zip(truth["instruction_id"], [each or {} for each in truth["kwargs"]], strict=True))
        if not pairs:
            raise ValueError("ground_truth has no instruction")
        return Problem(id, self.name, user_message(row), pairs, max_tokens=self.max_tokens)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The share of the instructions that are followed."""
        response = without_thoughts(completion)
        try:
            kept = [followed(kind, response, arguments) for kind, arguments in problem.answer]
        except BAD_INSTRUCTION:
            return no_gold(problem.answer)
        share = sum(kept) / len(kept)
        missed = ", ".join(kind for (kind, _), ok in zip(problem.answer, kept, strict=True) if not ok)
        outcome = "right" if share == 1 else "partial" if share else "wrong"
        return Verdict(share, outcome, {"all_followed": float(share == 1)}, note=missed and f"not followed: {missed}")

    def gold(self, problem: Problem) -> str | None:
        """A text that does nothing but follow the one instruction; several at once are nobody's example."""
        return following(*problem.answer[0]) if len(problem.answer) == 1 else None

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """A text that breaks the one instruction."""
        del other, rng
        return failing(*problem.answer[0]) if len(problem.answer) == 1 else None

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Nothing at all; any other text that does what is asked has earned it."""
        del problem
        return {"nothing": "", "spaces": " \n\t "}


class RlvrIfEval(DatasetTask):
    """Follow one instruction: rlvr_ifeval/train.jsonl (final).

    A row has `messages` (or `prompt`) and `ground_truth`, an object or its JSON: `func_name` and that function's
    arguments.
    """

    QUICK = True

    def __init__(self, max_tokens: int = 2048, **common: Any) -> None:
        super().__init__("rlvr_ifeval", **common)
        self.max_tokens = max_tokens

    def problem(self, id: str, row: Row) -> Problem:
        """A prompt and what its ground truth asks."""
        return Problem(id, self.name, user_message(row), ground_truth(row), max_tokens=self.max_tokens)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Obeyed, or not."""
        return verified_instruction(problem.answer, completion)

    def gold(self, problem: Problem) -> str | None:
        """A text that does nothing else, where one is known."""
        return example(problem.answer, right=True)

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """A text that does not."""
        del other, rng
        return example(problem.answer, right=False)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Nothing at all; any other text that does what is asked has earned it."""
        del problem
        return {"nothing": "", "spaces": " \n\t "}


def verified_instruction(truth: Mapping[str, Any], completion: str) -> Verdict:
    """Whether a text obeys a ground truth."""
    try:
        return RIGHT if obeyed(truth, completion) else WRONG
    except BAD_INSTRUCTION:
        return no_gold(truth)


def example(truth: Mapping[str, Any], right: bool) -> str | None:
    """A text that does, or does not, what a ground truth asks; None where none is written down."""
    pair = EXAMPLES.get(truth["func_name"])
    return None if pair is None else pair(truth)[0 if right else 1]


def ground_truth(row: Row) -> dict[str, Any]:
    """The ground truth of a row: an object with `func_name`."""
    truth = literal(row["ground_truth"])
    if not isinstance(truth, dict) or "func_name" not in truth:
        raise ValueError("ground_truth names no func_name")
    return truth


def literal(value: Any) -> Any:
    """Data that may be written as text: JSON, or what Python prints."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return ast.literal_eval(value)


def without_thoughts(completion: str) -> str:
    """What is said after thinking, without the tags of an answer."""
    said = completion.rpartition("</think>")[2]
    return said.replace("<answer>", "").replace("</answer>", "").strip()
