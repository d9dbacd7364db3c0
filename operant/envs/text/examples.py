"""Answers to imitate, from a file of JSON lines: one object a line, with the text before the answer and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from operant.envs.text.sources import Row, file_at, read_rows
from operant.errors import UsageError

PASSES_KEPT = 2


@dataclass(frozen=True)
class Example:
    """What is asked, and the answer to imitate; `system` and `prefix` are as in a problem."""

    prompt: str
    completion: str
    system: str | None = None
    prefix: str = ""


def read_examples(
    path: str, prompt: str = "prompt", completion: str = "completion", subset: Sequence[str] = ()
) -> list[Example]:
    """The examples of a file, `prompt` and `completion` naming its fields; with `subset` those of these sources.

    The source of a row is its field `source`, else `dataset_name` of its field `problem`, which may also have a
    `system_prompt` and an `assistant_prefix`.
    """
    file = file_at(path)
    if file is None:
        raise UsageError(
            f"agent.algorithm.sft_data.path: there is no file {path}",
            remedy=f"-s agent.algorithm.sft_data.path=FILE, JSON lines that have {prompt!r} and {completion!r}",
        )
    rows = read_rows(file)
    wanted = [(number, row) for number, row in enumerate(rows, 1) if not subset or _source(row) in subset]
    if not wanted:
        sources = sorted({_source(row) for row in rows})
        raise UsageError(
            f"no example is of {', '.join(subset) or 'this file'}", place=path, remedy=f"sources: {sources}"
        )
    return [_example(row, prompt, completion, f"{path}:{number}") for number, row in wanted]


class ExampleSampler:
    """Examples in an order shuffled anew for every pass: a function of the seed and the position alone (final)."""

    def __init__(self, examples: Sequence[Example], seed: int) -> None:
        self.examples = examples
        self.seed = seed
        self._pass = lru_cache(maxsize=PASSES_KEPT)(self._shuffled)

    def take(self, position: int, count: int) -> list[Example]:
        """The examples at position, position + 1, ..."""
        places = (divmod(place, len(self.examples)) for place in range(position, position + count))
        return [self.examples[self._pass(number)[place]] for number, place in places]

    def _shuffled(self, number: int) -> list[int]:
        places = list(range(len(self.examples)))
        Random(f"examples/{self.seed}/{number}").shuffle(places)
        return places


def _problem(row: Row) -> dict[str, Any]:
    found = row.get("problem")
    return found if isinstance(found, dict) else {}


def _source(row: Row) -> str:
    return str(row.get("source") or _problem(row).get("dataset_name") or "")


def _example(row: Row, prompt: str, completion: str, place: str) -> Example:
    for field in (prompt, completion):
        if not isinstance(row.get(field), str) or not row[field]:
            raise UsageError(f"this line has no text {field!r}", place=place, remedy=f"it has {', '.join(row)}")
    about = _problem(row)
    return Example(
        row[prompt], row[completion], about.get("system_prompt") or None, about.get("assistant_prefix") or ""
    )
