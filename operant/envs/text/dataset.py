"""The base of tasks whose problems are the rows of one dataset file, and what rows of chat datasets have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from operant.envs.text.sources import Row, file_at, find_file, in_share, look_for, read_rows
from operant.envs.text.task import Problem, Task
from operant.errors import UsageError

EVAL_SHARE = 0.02
BAD_ROW = (LookupError, TypeError, ValueError, SyntaxError, AttributeError, StopIteration, RecursionError)


class DatasetTask(Task):
    """Problems from FOLDER/train.jsonl, where FOLDER is the task's name, or from the file `path` (abstract).

    Problems for evaluation are those of test.jsonl beside it (of `eval_path`); where there is none, they are the share
    `eval_share` of the others, by a hash of the prompt, and not trained on.
    """

    def __init__(
        self,
        name: str,
        data: str | None = None,
        path: str | None = None,
        eval_path: str | None = None,
        eval_share: float = EVAL_SHARE,
    ) -> None:
        self.name = self.folder = name
        self.data, self.path, self.eval_path = data, path, eval_path
        self.eval_share = eval_share

    @abstractmethod
    def problem(self, id: str, row: Row) -> Problem | None:
        """The problem of a row; None for a row that is not asked."""

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split, in the order of the file."""
        own = self._eval_rows
        rows = own if split == "eval" and own is not None else self._train_rows
        place = str(self.eval_path if split == "eval" and self.eval_path else self.path or self.folder)
        found = [self._read(f"{self.name}/{split}/{index}", row, place) for index, row in enumerate(rows)]
        asked = [problem for problem in found if problem is not None]
        if own is None:
            share = self._share([each.prompt for each in asked])
            asked = [each for each in asked if in_share(each.prompt, share) == (split == "eval")]
        if not asked:
            raise UsageError(
                f"{self.name}: no problems for {split}", place=place, remedy="a larger eval_share, or file"
            )
        return asked

    def _share(self, prompts: Sequence[str]) -> float:
        """The share for evaluation, so much larger that a small file has a problem for it too."""
        share = self.eval_share
        while 0 < share < 1 and not any(in_share(prompt, share) for prompt in prompts):
            share *= 2
        return share

    def _read(self, id: str, row: Row, place: str) -> Problem | None:
        try:
            return self.problem(id, row)
        except BAD_ROW as fault:
            cause = f"{self.name}: row {id.rpartition('/')[2]} is not as it should be: {type(fault).__name__}: {fault}"
            raise UsageError(
                cause, place=place, remedy=f"operant help tasks, or docs/howto/tasks.md: {self.name}"
            ) from None

    @cached_property
    def _train_rows(self) -> list[Row]:
        if self.path is None:
            return read_rows(find_file(self.name, self.folder, "train.jsonl", self.data))
        return read_rows(_there(self.name, self.path))

    @cached_property
    def _eval_rows(self) -> list[Row] | None:
        if self.eval_path is not None:
            return read_rows(_there(self.name, self.eval_path))
        beside = None if self.path is not None else look_for(self.folder, "test.jsonl", self.data)
        return None if beside is None else read_rows(beside)


def _there(task: str, path: str) -> Path:
    found = file_at(path)
    if found is None:
        raise UsageError(f"{task}: there is no file {path}", remedy="env.text.arguments: {path: FILE.jsonl}")
    return found


def user_message(row: Row) -> str:
    """What the user says first in a row of `messages`; in a row without them its `prompt`."""
    messages = row.get("messages")
    if messages is None:
        return str(row["prompt"])
    return next(str(turn["content"]) for turn in messages if turn["role"] == "user")
