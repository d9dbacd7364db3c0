"""`operant bench` as it is typed: whole suites of a toy engine, going on after a kill, and the gate's exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import operant as lab
from operant.benchmark.load import builtin_suites
from operant.errors import EXIT_FAILED, EXIT_USAGE
from operant.report.read import read_trial
from tests.cli.conftest import Operant, Toy
from tests.cli.test_completion import values

SUITE = """\
seeds: 4
cells:
  - {spec: toy.yaml, published: 90}
  - {name: longer, spec: toy.yaml, frames: 120}
"""


@pytest.fixture
def suite(toy: Toy) -> Toy:
    toy.write(frames=100, bonus_of="gamma")
    (toy.folder / "mine.yaml").write_text(SUITE)
    return toy


def stored(folder: Path, cell: str) -> dict:
    return json.loads((folder / f"{cell}.json").read_text())


@pytest.mark.slow
def test_a_suite_is_trained_told_kept_and_compared(operant: Operant, suite: Toy) -> None:
    first = operant("bench", "mine.yaml", "--cells", "t*")
    assert first.code == 0, first.err
    assert "score 101.0 [101.0, 101.0]" in first.out
    kept = stored(Path("bench/mine"), "toy")
    assert (kept["frames"], kept["seeds"], kept["published"]) == (100, [0, 1, 2, 3], 90.0)
    assert kept["greedy"]["each"] == [pytest.approx(100.99)] * 4
    assert len(read_trial(Path("runs") / kept["run"]).sessions) == 4
    table = Path("bench/mine/RESULTS.md").read_text()
    assert "| Toy-v0 | `toy` | 100 | 0 to 3 | 101.0 [101.0, 101.0] |" in table
    assert table.count("| yes |") == 1

    again = operant("bench", "mine.yaml", "--json", "--cells", "toy")
    assert [cell["run"] for cell in again.document["cells"]] == [kept["run"]]
    assert again.err.count("kept from before") == 1

    same = operant("bench", "mine.yaml", "--out", "bench/new", "--against", "bench/mine", "--speed", "--cells", "t*")
    assert same.code == 0
    assert "no clear difference  101.0 [101.0, 101.0] -> 101.0 [101.0, 101.0]" in same.out
    assert "speed, which depends on what else the machine does:" in same.out
    assert stored(Path("bench/new"), "toy")["run"] != kept["run"], "another folder of results measures again"

    lower = ("-s", "agent.algorithm.gamma=0.5")
    bad = operant(
        "bench", "mine.yaml", "--out", "bench/bad", "--against", "bench/mine", "--json", "--cells", "toy", *lower
    )
    assert (bad.code, bad.document["exit"], bad.document["worse"]) == (1, 1, ["toy"])
    assert bad.document["comparisons"][0]["note"] == "with agent.algorithm.gamma=0.5"


@pytest.mark.slow
def test_a_reduced_budget_is_told_and_not_compared(operant: Operant, suite: Toy) -> None:
    assert operant("bench", "mine.yaml", "--cells", "toy", "--seeds", "1").code == 0
    short = operant(
        "bench",
        "mine.yaml",
        "--cells",
        "toy",
        "--seeds",
        "1",
        "--frames",
        "50",
        "--out",
        "b",
        "--against",
        "bench/mine",
    )
    assert short.code == 0
    assert "not compared  other budget: 100 frames then, 50 now" in short.out
    assert "| 50 of 100 |" in Path("b/RESULTS.md").read_text()
    replaced = operant("bench", "mine.yaml", "--cells", "toy", "--frames", "70", "--seeds", "1", "--out", "b")
    assert "toy: the result in b is of another run and will be replaced" in replaced.out
    assert stored(Path("b"), "toy")["frames"] == 70


def test_a_bench_that_was_killed_goes_on_in_the_same_runs(operant: Operant, suite: Toy) -> None:
    suite.write(frames=100, pause=0.05, pause_from=50)
    words = ["bench", "mine.yaml", "--cells", "toy", "--seeds", "2"]
    process = subprocess.Popen([sys.executable, "-m", "operant", *words], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(Path("runs").glob("toy/bench-mine-*/trial_000/session_*/checkpoints/0*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    on = operant(*words)
    assert on.code == 0, on.err
    [run] = Path("runs/toy").iterdir()
    assert stored(Path("bench/mine"), "toy")["run"] == f"toy/{run.name}"
    rows = [row["frames"] for row in read_trial(run).sessions[0].rows if "train/return" in row]
    assert rows == list(range(10, 101, 10))


def test_a_failed_session_is_told_after_the_others_have_ended(operant: Operant, suite: Toy) -> None:
    suite.write(frames=100, fail_at=110)
    failed = operant("bench", "mine.yaml", "--seeds", "1")
    assert failed.code == EXIT_FAILED
    assert (
        "sessions that failed: 1; the first: RuntimeError: the toy broke; its log is runs/toy/bench-mine-" in failed.err
    )
    assert "| `toy` | 100 |" in Path("bench/mine/RESULTS.md").read_text()


def test_cells_are_listed_with_budget_and_time(operant: Operant, suite: Toy) -> None:
    shown = operant("bench", "mine.yaml", "--list", "--jobs", "1")
    assert "longer" in shown.out
    assert "4 x         120 frames  about 0.5 s" in shown.out
    assert "about 0.9 s on this machine" in shown.out
    facts = operant("bench", "mine.yaml", "--list", "--no-estimate", "--json").document
    assert [(cell["cell"], cell["frames"], cell["seconds"]) for cell in facts["cells"]] == [
        ("toy", 100, None),
        ("longer", 120, None),
    ]
    assert not Path("runs").exists()


def test_mistakes_are_refused_before_anything_is_written(operant: Operant, suite: Toy) -> None:
    Path("bench/mine").mkdir(parents=True)
    for words, told in (
        (("quik",), "did you mean quick?"),
        (("mine.yaml", "--cells", "toi"), "did you mean toy?"),
        (("mine.yaml", "--against", "nowhere"), "nowhere: there is no such folder of results"),
        (("mine.yaml", "--against", "bench/mine"), "would replace those that they are compared with"),
        (
            ("mine.yaml", "-s", "agent.algorithm.gama=1"),
            "cell toy: command line: agent.algorithm.gama is not a setting",
        ),
    ):
        refused = operant("bench", *words)
        assert refused.code == EXIT_USAGE
        assert told in refused.err
    assert not Path("runs").exists()


def test_from_python(suite: Toy) -> None:
    lines: list[str] = []
    result = lab.bench("mine.yaml", cells=["toy"], seeds=1, out="there", report=lines.append, gamma=0.5)
    assert result.outcomes[0]["greedy"]["point"] == pytest.approx(100.5)
    assert result.outcomes[0]["set"] == ["gamma=0.5"]
    assert result.worse == []
    assert any("results: there/RESULTS.md" in line for line in lines)


def test_the_shell_is_offered_suites_and_files(suite: Toy) -> None:
    assert {*builtin_suites(), "mine.yaml"} <= set(values("bench", ""))
    assert values("bench", "qui") == ["quick"]


@pytest.mark.parametrize(
    ("cell", "told", "remedy"),
    [
        ("sarsa_cartpole", "--frames 10 ends before the first update", "--frames 128"),
        ("dqn_cartpole", "leaves nothing to train on: --frames 10", "operant help algorithm dqn"),
    ],
)
def test_too_few_frames_are_told_in_the_words_of_the_option(
    operant: Operant, cell: str, told: str, remedy: str
) -> None:
    refused = operant("bench", "classic", "--cells", cell, "--frames", "10")
    assert refused.code == 2
    assert told in refused.err
    assert f"try: {remedy}" in refused.err
    assert "env.max_frame" not in refused.err
    lines = refused.err.splitlines()
    typed = lines.index("  --frames 10")
    assert lines[typed + 1].startswith("           ^^ ")


@pytest.mark.slow
def test_seeds_that_come_later_join_those_of_the_same_settings(operant: Operant, suite: Toy) -> None:
    first = ("bench", "mine.yaml", "--cells", "toy", "--seeds", "2")
    later = ("bench", "mine.yaml", "--cells", "toy", "--seeds", "1", "-s", "meta.seed=2", "--add")
    assert operant(*first).code == 0
    alone = stored(Path("bench/mine"), "toy")
    assert operant(*later).code == 0
    both = stored(Path("bench/mine"), "toy")
    assert (both["seeds"], both["greedy"]["n"], len(both["seconds"])) == ([0, 1, 2], 3, 3)
    assert both["greedy"]["each"][:2] == alone["greedy"]["each"]
    assert [part["seeds"] for part in both["parts"]] == [[0, 1], [2]]
    assert "| 100 | 0 to 2 | 101.0" in Path("bench/mine/RESULTS.md").read_text()
    for again in (first, later):
        assert "kept from before" in operant(*again).out
        assert stored(Path("bench/mine"), "toy") == both

    overlapping = operant("bench", "mine.yaml", "--cells", "toy", "--seeds", "2", "-s", "meta.seed=2", "--add")
    assert overlapping.code == EXIT_USAGE
    assert "bench/mine/toy.json: this result has seed 2 already" in overlapping.err
    assert "-s meta.seed=3" in overlapping.err
    lower = operant(*later, "-s", "agent.algorithm.gamma=0.5", "-s", "meta.seed=9")
    assert lower.code == EXIT_USAGE
    assert "this result is of other settings than toy has now" in lower.err
    assert len(list(Path("runs/toy").iterdir())) == 2, "what is refused is refused before anything is trained"
