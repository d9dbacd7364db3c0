"""Task and dataset files in which something was changed at random: read, or refused in one place of the file."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from operant.envs.research.mlgym.datasets import read_dataset
from operant.envs.research.mlgym.sheets import DataSheet, TaskSheet
from operant.envs.research.mlgym.table import DATASET, TABLE, TASK
from operant.envs.research.mlgym.task import load_imported
from operant.errors import OperantError
from tests.unit.envs.research.mlgym_checkout import SHEETS

VALUES = (
    "",
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    ".nan",
    "true",
    "[null]",
    "../../etc",
    "/etc/passwd",
    '"\\0"',
    "&a [*a]",
    "x" * 999,
)
CHARACTERS = (*"\t:{}[]#&*!|>'\"%@`-?,", "\0", "\ud7ff", "\u2028", "é", "- ", "\n", "\n  ", "<<: ")


def mutated(text: str, rng: Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(lines))
        key = lines[place].partition(":")[0]
        at = rng.randrange(len(lines[place]) + 1)
        lines[place] = rng.choice(
            (
                "",
                f"{key}: {rng.choice(VALUES)}",
                lines[place][:at] + rng.choice(CHARACTERS) + lines[place][at:],
                lines[place][:at],
                lines[rng.randrange(len(lines))],
            )
        )
    return "\n".join(lines)


@pytest.mark.parametrize("count", [300, pytest.param(3_000, marks=pytest.mark.slow)])
def test_a_changed_file_is_read_or_refused_at_a_place_of_a_file(checkout: Path, count: int) -> None:
    rng = Random(count)
    refused: list[str] = []
    for _ in range(count):
        name = rng.choice(sorted(SHEETS))
        file = checkout / name
        file.write_text(mutated(SHEETS[name], rng), encoding="utf-8", errors="replace")
        try:
            read_dataset(str(file)) if "/datasets/" in name else load_imported(str(file))
        except OperantError as problem:
            refused.append(str(problem))
        file.write_text(SHEETS[name])
    place = re.compile(rf"{re.escape(str(checkout))}/configs/\S+\.yaml:\d+:\d+: ")
    assert [said for said in refused if not place.match(said)] == []
    assert count / 10 < len(refused) < count, "some are still good"


def test_the_table_speaks_of_every_setting_that_is_read() -> None:
    for kind, sheet in ((TASK, TaskSheet), (DATASET, DataSheet)):
        rows = {row.place: row for row in TABLE.chosen(kind)}
        read = {place for place, row in rows.items() if row.kind != "ignored"}
        assert read == set(sheet.model_fields)
        assert all(row.means and (row.ours or row.said) for row in rows.values())
