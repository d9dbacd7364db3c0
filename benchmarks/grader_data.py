"""Sets for `benchmarks.graders` that are not among the data: made from those that are, or from examples."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from operant.envs.text.constraint_examples import EXAMPLES
from operant.envs.text.open_instruct import EXAMPLES as OBEYED
from operant.envs.text.sources import read_rows

Row = dict[str, Any]
ROWS = 500
EACH = 20  # rows for each kind of instruction
WORDS = ("river", "lamp", "orange", "winter", "music", "paper", "garden", "silver")
PROGRAMS = {
    "Read two integers, one a line, and print their sum.": "print(int(input()) + int(input()))",
    "Read two integers, one a line, and print the first minus the second.": "print(int(input()) - int(input()))",
    "Read an integer n, then n integers on a line; print the largest.": (
        "input()\nprint(max(int(x) for x in input().split()))"
    ),
    "Read an integer n, then n integers on a line; print them sorted.": (
        "input()\nprint(*sorted(map(int, input().split())))"
    ),
    "Read an integer n and print n squared plus n.": "n = int(input())\nprint(n * n + n)",
    "Read an integer n and print yes if it is even, else no.": (
        "n = int(input())\nif n % 2 == 0:\n    print('yes')\nelse:\n    print('no')"
    ),
    "Read an integer n and print the sum of its decimal digits.": "print(sum(map(int, input().strip('-'))))",
    "Read an integer n and print the sum of the numbers from 1 to the size of n.": (
        "n = abs(int(input()))\ntotal = 0\nfor i in range(1, n + 1):\n    total += i\nprint(total)"
    ),
}


def write_sets(data: Path, made: Path) -> None:
    """Write all sets to a folder, from the folder of data."""
    gsm8k = read_rows(data / "gsm8k" / "test.jsonl")[:ROWS]
    math = read_rows(data / "math500" / "test.jsonl")
    words = [{"prompt": row["question"], "answer": row["answer"].rpartition("####")[2].strip()} for row in gsm8k]
    formulas = [{"prompt": row["problem"], "answer": row["answer"]} for row in math]
    instructions = list(_instructions())
    _write(made / "deepscaler" / "train.jsonl", [{"problem": row["problem"], "answer": row["answer"]} for row in math])
    _write(made / "rlvr_ifeval" / "train.jsonl", instructions)
    _write(made / "if_multi_constraints" / "train.jsonl", list(_constraints()))
    mixed = [{"prompt": row["prompt"], "ground_truth": row["answer"], "dataset": "gsm8k"} for row in words]
    mixed += [{"prompt": row["prompt"], "ground_truth": row["answer"], "dataset": "MATH"} for row in formulas]
    mixed += [{**row, "dataset": "ifeval"} for row in instructions]
    _write(made / "allenai_rlvr" / "train.jsonl", mixed)
    _write(made / "apps" / "train.jsonl", list(_programs()))
    for verifier in ("exact", "number", "last_number"):
        _write(made / f"{verifier}.jsonl", words)
    _write(made / "math.jsonl", formulas)


def _write(file: Path, rows: Sequence[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _arguments(rng: Random) -> Row:
    """A value for every argument that an instruction may take."""
    one, two, three = rng.sample(WORDS, 3)
    return {
        "prompt_to_repeat": f"Write about the {one} and the {two}.",
        "phrase": f"the {one} {two} {three}",
        "end_phrase": f"That is all about the {three}.",
        "keyword_list": [one, two],
        "forbidden_words": [two],
        "letter": rng.choice("aeqz"),
        **dict.fromkeys(("keyword", "keyword1", "first_word", "word"), one),
        **dict.fromkeys(("keyword2", "last_word"), two),
        **dict.fromkeys(("relation", "let_relation"), rng.choice(("at least", "less than"))),
        **{name: rng.randint(2, 5) for name in ("N", "small_n", "frequency", "let_frequency", "n_words")},
        **{name: rng.randint(1, 3) for name in ("n", "m", "n_sent", "n_start")},
        "n_end": rng.randint(9, 16),
    }


class _Asked(dict):
    """Remembers which arguments an example asks for, which are those that its instruction takes."""

    def __init__(self, values: Row) -> None:
        super().__init__(values)
        self.used: Row = {}

    def __getitem__(self, name: str) -> Any:
        self.used[name] = super().__getitem__(name)
        return self.used[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default


def _taken(example: Any, rng: Random) -> Row:
    asked = _Asked(_arguments(rng))
    example(asked)
    return asked.used


def _instructions() -> Iterator[Row]:
    for name, example in OBEYED.items():
        for place in range(EACH):
            taken = _taken(example, Random(f"{name}/{place}"))
            yield {"prompt": f"Follow {name}, {place}.", "ground_truth": json.dumps({"func_name": name, **taken})}


def _constraints() -> Iterator[Row]:
    for name, example in EXAMPLES.items():
        for place in range(EACH):
            taken = _taken(example, Random(f"{name}/{place}"))
            if "relation" in taken and "let_relation" in taken:
                del taken["let_relation" if "let_frequency" not in taken else "relation"]
            truth = [{"instruction_id": [name], "kwargs": [taken]}]
            yield {"prompt": f"Follow {name}, {place}.", "ground_truth": truth}


def _programs() -> Iterator[Row]:
    for question, program in PROGRAMS.items():
        rng = Random(question)
        inputs = [_input(question, rng) for _ in range(5)]
        argv = [sys.executable, "-c", program]
        outputs = [subprocess.run(argv, input=text, capture_output=True, text=True).stdout for text in inputs]
        yield {"question": question, "solutions": [program], "input_output": {"inputs": inputs, "outputs": outputs}}


def _input(question: str, rng: Random) -> str:
    if "n integers" in question:
        numbers = [rng.randint(-99, 99) for _ in range(rng.randint(3, 8))]
        return f"{len(numbers)}\n{' '.join(map(str, numbers))}\n"
    return "".join(f"{rng.randint(-500, 500)}\n" for _ in range(2 if "two integers" in question else 1))
