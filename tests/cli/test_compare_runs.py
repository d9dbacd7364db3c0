"""`diff`, `verify`, `tag`, `archive`, `card`, `report` and `monitor` from the command line, with the toy engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.cli.app import run
from tests.cli.conftest import Toy, use_toy_engine

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the toy engine, trained once."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        use_toy_engine(patch)
        patch.chdir(folder)
        Toy(folder)
        assert run(["train", "toy.yaml", "--out", "a", "--json"]) == 0
    return folder / "a"


@pytest.fixture
def trained(toy: Toy, run_folder: Path) -> Toy:
    """A working directory with that run in it, as `a`."""
    shutil.copytree(run_folder, toy.folder / "a", symlinks=True)
    return toy


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_diff_orders_by_what_matters_and_knows_the_same_run(operant: Operant, trained: Toy) -> None:
    assert operant("diff", "a", "a/trial_000").out == "A and B are the same run: a/trial_000\n"
    (trained.folder / "b.yaml").write_text(
        (trained.folder / "toy.yaml")
        .read_text()
        .replace("name: ppo,", "name: ppo, gamma: 0.5,")
        .replace("toy", "other")
    )
    told = operant("diff", "a", "b.yaml", "--json").document
    assert [each["name"] for each in told["differences"]] == ["agent.algorithm.gamma", "name"]
    assert told["a"]["score"]["point"] == 100.0
    assert told["b"] == {**told["b"], "is_run": False, "score": None}
    words = operant("diff", "a", "b.yaml").out
    assert words.index("settings that touch learning") < words.index("no effect on learning")
    assert operant("diff", "a", "spec:nonsense").code == 2
    assert "there is no run 'nonsense'" in operant("diff", "a", "nonsense").err


@pytest.mark.slow  # tests/e2e/test_verify.py has every cause
def test_verify_compares_rows_and_weights_and_leaves_the_run_alone(operant: Operant, trained: Toy) -> None:
    before = contents(trained.folder / "a")
    told = operant("verify", "a", "--fraction", "0.5", "--json")
    assert (told.code, told.document["verdict"]) == (0, "bitwise equal")
    assert [(each["frames"], each["checkpoints"]) for each in told.document["sessions"]] == [(50, [50])] * 2
    assert contents(trained.folder / "a") == before

    metrics = trained.folder / "a/trial_000/session_1/metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"eval/score":50.0', '"eval/score":57.0'))
    words = operant("verify", "a", "--fraction", "0.5")
    assert words.code == 1
    assert words.out.startswith("different: 50 % of a/trial_000 was run again\n")
    assert "session 0 (seed 0) to frame 50: 6 metric rows, 0 episodes, weights at frame 50: equal" in words.out
    assert "metrics.jsonl line 6: eval/score: 57.0 and 50.0" in words.out
    assert "the run's files were changed after it ran" in words.out


@pytest.mark.parametrize("fraction", ["0", "-1", "1.5", "nan"])
def test_a_fraction_that_is_none_is_refused_before_any_work(operant: Operant, trained: Toy, fraction: str) -> None:
    told = operant("verify", "a", "--fraction", fraction)
    assert told.code == 2
    assert "cannot be run again" in told.err


def copied(run_folder: Path, target: Path, gamma: float, score: float) -> None:
    """The run as one of another gamma and score."""
    shutil.copytree(run_folder, target, symlinks=True)
    resolved = json.loads((target / "resolved.json").read_text())
    resolved["agent"]["algorithm"]["gamma"] = gamma
    (target / "resolved.json").write_text(json.dumps(resolved))
    for metrics in target.glob("*/*/metrics.jsonl"):
        metrics.write_text(metrics.read_text().replace('"final/score":100.0', f'"final/score":{score}'))


def test_runs_are_filtered_sorted_tagged_and_archived(operant: Operant, here: Path, run_folder: Path) -> None:
    copied(run_folder, here / "runs/toy/20260101-000000", 0.9, 25.0)
    copied(run_folder, here / "runs/toy/20260101-000001", 0.99, 21.0)

    def scores(*words: str) -> list[float]:
        return [row["score"]["point"] for row in operant("runs", *words, "--json").document["runs"]]

    assert scores() == [21.0, 25.0]
    assert scores("--sort", "score") == [25.0, 21.0]
    assert scores("--where", "gamma>0.95") == [21.0]
    assert scores("--where", "agent.algorithm.name=ppo", "--where", "score>=25") == [25.0]
    assert scores("--where", "agent.algorithm.name!=ppo") == []
    assert scores("--env", "Toy*", "--state", "done", "--limit", "1") == [21.0]
    assert operant("tag", "latest", "+paper", "+hard").out.endswith(": paper hard\n")
    assert operant("tag", "latest", "-hard", "--json").document["tags"] == ["paper"]
    assert scores("--tag", "paper") == scores("--text", "PAP") == [21.0]
    assert operant("archive", "latest").code == 0
    assert scores() == [25.0]
    assert scores("--archived") == [21.0, 25.0]
    assert "paper (archived)" in operant("runs", "--archived").out
    assert operant("archive", "latest", "--undo").code == 0
    assert scores() == [21.0, 25.0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("runs", "--where", "gama=1"), "no run has a setting gama\n  try: did you mean gamma?"),
        (("runs", "--where", "gamma"), "'gamma' is no condition"),
        (("runs", "--sort", "luck"), "there is no order 'luck'"),
        (("tag", "a", "+two words"), "'two words' cannot be a tag"),
        (("tag", "a", "--jsn"), "there is no option --jsn"),
        (("report", "a", "-o", "toy.yaml"), "the file exists already, and nothing is ever overwritten"),
        (("card", "a", "-o", "nowhere/card.md"), "its folder does not exist"),
        (("monitor", "nonsense"), "there is no run 'nonsense'"),
    ],
)
def test_mistakes_are_named(operant: Operant, trained: Toy, words: tuple[str, ...], told: str) -> None:
    (trained.folder / "runs/toy").mkdir(parents=True)
    shutil.copytree(trained.folder / "a", trained.folder / "runs/toy/1", symlinks=True)
    answer = operant(*words)
    assert answer.code == 2
    assert told in answer.err


def test_card_report_and_monitor_read_a_run(operant: Operant, trained: Toy) -> None:
    assert "| trial_000 | done | 2 | 100 | 100.0 [100.0, 100.0] | final evaluation |" in operant("card", "a").out
    assert operant("card", "a", "-o", "card.md").out == "card.md\n"
    assert "# toy" in (trained.folder / "card.md").read_text()

    told = operant("report", "a", "-o", "a.html", "--json").document
    page = (trained.folder / "a.html").read_text()
    assert told["bytes"] == len(page.encode())
    assert "<svg" in page
    assert "<script" not in page

    before = contents(trained.folder / "a")
    lines = operant("monitor", "a").out.splitlines()
    assert lines[1].split()[:4] == ["a", "done", "100", "%"]
    (row,) = operant("monitor", "a", "--json").document["runs"]
    assert (row["sessions"], row["frames"], row["total"]) == (2, 200, 200)
    events = trained.folder / "a/trial_000/session_0/events.jsonl"
    with events.open("a") as file:
        file.write(json.dumps({"kind": "health", "message": "play has stopped exploring"}) + "\n")
    assert operant("monitor", "a").out.splitlines()[-1] == "a: health: play has stopped exploring"
    assert contents(trained.folder / "a").keys() == before.keys()
