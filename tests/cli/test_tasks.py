"""The language tasks on the command line: listed, shown, and checked without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.envs.research.mlgym_checkout import write_checkout

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the developer's datasets."""
    monkeypatch.delenv("OPERANT_DATA", raising=False)


@pytest.fixture
def mine(here: Path) -> str:
    rows = [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(60)]
    (here / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "mine.jsonl"


def test_the_list(operant: Operant) -> None:
    listed = operant("tasks")
    assert listed.code == 0
    assert listed.out.split()[:3] == ["arithmetic", "sums,", "differences,"]
    names = [row["name"] for row in operant("tasks", "--json").document["tasks"]]
    assert {"gsm8k", "math", "mbpp", "humaneval", "ifeval", "jsonl"} <= set(names)


def test_a_task_is_shown(operant: Operant) -> None:
    shown = operant("tasks", "show", "arithmetic", "-n", "1", "-a", "style=bare", "-a", "digits=1")
    assert shown.out.splitlines() == [
        "arithmetic: 200 problems in eval",
        "scored by: The number that ends the text, or in style `bare` begins it.",
        "takes: operations=add, digits=2, style=words, size=10000, eval_size=200, seed=0, max_tokens=None",
        "",
        "--- arithmetic/eval/0",
        "4+7=",
        "[gold] 11",
        r"[ends] at '\n', or 5 tokens",
    ]


def test_a_task_is_shown_as_a_document(operant: Operant) -> None:
    document = operant("tasks", "show", "copy", "-n", "2", "--split", "train", "--json").document
    assert document["problems"] == 10_000
    assert [row["id"] for row in document["shown"]] == ["copy/train/0", "copy/train/1"]
    assert document["shown"][0]["gold"] == document["shown"][0]["answer"]


def test_a_sound_task(operant: Operant) -> None:
    checked = operant("tasks", "validate", "countdown", "-a", "size=50", "-a", "eval_size=10", "--wrong", "100")
    assert checked.code == 0
    row = _line(checked.out, 1).split()
    assert " ".join(row[:7]) == "countdown 0 of 60 0 of 100"
    assert " ".join(row[7:11]) == "0.00 % [0.00, 2.34]"
    assert row[-1] == "sound"


def test_a_file_of_ones_own(operant: Operant, mine: str) -> None:
    report = operant("tasks", "validate", mine, "-a", "verifier=number", "--json").document["tasks"][0]
    kinds = report["kinds"]
    assert [kinds[kind]["count"] for kind in ("gold", "other")] == [60, 1_000]
    assert [kinds[kind]["errors"] for kind in ("gold", "other", "near_miss")] == [0, 0, 0]
    assert 0 < kinds["other"]["high"] < 0.01


def test_a_task_that_verifies_wrongly(operant: Operant, mine: str, here: Path) -> None:
    rows = [{"prompt": f"{i}?", "answer": "no number"} for i in range(3)]
    (here / mine).write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = operant("tasks", "validate", mine, "-a", "verifier=number", "-a", "eval_share=0")
    assert checked.code == 3
    assert "NOT SOUND" in checked.out
    assert "a gold answer is invalid 3 times (no_gold), such as mine/train/0: the reference answer" in checked.out


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("show", "gsm8k"), "gsm8k: its data folder is not set"),
        (("show", "copy", "--split", "test"), "there is no split 'test'"),
        (("validate", "gsm9k"), "there is no task 'gsm9k'\n  try: did you mean gsm8k?"),
        (("validate", "copy", "-a", "letters"), "'letters' is no argument"),
        (("sow", "copy"), "there is no command sow; did you mean show?"),
    ],
)
def test_mistakes(operant: Operant, words: tuple[str, ...], cause: str) -> None:
    said = operant("tasks", *words)
    assert said.code == 2
    assert said.err.startswith(cause)


def _line(text: str, number: int) -> str:
    return text.splitlines()[number]


GUESS = Path(__file__).parents[1] / "unit" / "envs" / "research" / "guess"


def test_a_task_in_turns_is_shown_with_its_facts(operant: Operant) -> None:
    shown = operant("tasks", "show", str(GUESS))
    assert shown.code == 0
    assert "ceiling   1\n" in shown.out
    assert "[user]\nWrite solution.py" in shown.out
    facts = operant("tasks", "show", str(GUESS / "task.yaml"), "--json").document
    assert facts["facts"]["files"] == "README.md, examples.txt"
    assert [message["role"] for message in facts["opening"]] == ["system", "user"]


def test_research_tasks_are_listed_by_their_folders(operant: Operant) -> None:
    from operant.envs.research.catalogue import shipped

    rows = {row["name"]: row["about"] for row in operant("tasks", "--json").document["tasks"]}
    assert set(shipped()) <= set(rows)
    assert all(rows[name] for name in shipped())


def test_a_mistake_in_a_folder_is_told_with_its_line(operant: Operant, here: Path) -> None:
    (here / "task.yaml").write_text("name: mine\nabuot: a word too many\n")
    told = operant("tasks", "show", "./")
    assert told.code == 2
    assert "task.yaml:2:1" in told.err
    assert "did you mean about?" in told.err


def test_the_files_of_a_checkout_are_imported_and_counted(operant: Operant, here: Path) -> None:
    write_checkout(here / "lab")
    found = operant("tasks", "import", "lab")
    assert found.code == 0
    assert found.out.splitlines()[-1] == "files 4, imported 4, data and packages there 3, baseline scored 0"
    assert "far.yaml lacks: configs/datasets/none.yaml is not there; data/none.py is not there;" in found.out
    (here / "lab/configs/tasks/coins.yaml").write_text("id: 1\nname: [\n")
    spoilt = operant("tasks", "import", "lab", "--json")
    assert spoilt.code == 3
    rows = {row["file"]: row for row in spoilt.document["files"]}
    assert [name for name, row in rows.items() if not row["imported"]] == ["coins.yaml"]
    assert "coins.yaml:3:1" in rows["coins.yaml"]["lacks"]
    assert "there is no folder nowhere" in operant("tasks", "import", "lab", "--data", "nowhere").out


def test_a_checkout_without_task_files_is_refused(operant: Operant, here: Path) -> None:
    refused = operant("tasks", "import", str(here))
    assert refused.code == 2
    assert "there are no task files here" in refused.err
