"""Whole runs through the command line, with an engine that starts in a moment."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.cli.app import run
from tests.cli.conftest import Toy, use_toy_engine

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two sessions were trained to their end."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        use_toy_engine(patch)
        Toy(folder)
        assert run(["train", "toy.yaml"]) == 0
    return folder


@pytest.fixture
def done(trained: Path, toy: Toy) -> Toy:
    """The toy's working directory with a copy of the finished run."""
    shutil.copytree(trained / "runs", toy.folder / "runs")
    return toy


def test_train_tells_the_result_and_what_to_do_next(operant: Operant, toy: Toy) -> None:
    done = operant("train", "toy.yaml")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "operant train toy.yaml"
    assert "toy: ppo on Toy-v0, 2 sessions (seeds 0 to 1) of 100 frames" in done.out
    assert "score 100.0 [100.0, 100.0] mean greedy return over 2 seeds" in done.out
    assert "trial_metrics" not in done.out
    assert "trial_metrics: frame:100 | total_reward_ma:55 | strength:55" in operant("show", "toy").out
    (figure,) = re.findall(r"figure: (\S+)", done.out)
    assert Path(figure).read_bytes().startswith(b"\x89PNG")
    for verb in ("show", "watch", "plot", "resume"):
        assert f"  operant {verb} runs/toy/" in done.out
    assert str(toy.folder) not in done.out
    assert toy.states() == ["done", "done"]


def test_train_as_json_is_one_document_and_progress_goes_elsewhere(operant: Operant, toy: Toy) -> None:
    done = operant("train", "toy.yaml", "--json", "--sessions", "3", "--seed", "5")
    assert done.document["exit"] == done.code == 0
    assert [outcome["seed"] for outcome in done.document["outcomes"]] == [5, 6, 7]
    assert done.document["trials"][0]["score"]["point"] == 100.0
    assert "session_0" in done.err


def test_the_threads_of_a_session_are_recorded_and_used(operant: Operant, toy: Toy) -> None:
    operant("train", "toy.yaml", "--sessions", "1", "-s", "meta.threads=3")
    (run,) = toy.sessions()
    provenance = json.loads((run.path / "provenance" / "attempt_001.json").read_text())
    assert run.threads == 3
    assert provenance["environment"]["OMP_NUM_THREADS"] == "3"


def test_until_pauses_and_resume_goes_on(operant: Operant, toy: Toy) -> None:
    paused = operant("train", "toy.yaml", "--until", "60")
    assert paused.code == 0
    assert toy.states() == ["stopped", "stopped"]
    assert "(to the full budget)" in paused.out
    again = operant("resume", "toy", "--until", "60")
    assert "every session has reached 60 frames; nothing to resume" in again.out
    resumed = operant("resume", "toy")
    assert resumed.code == 0
    assert "session_0 continues at frame 60 of 100" in resumed.out
    assert toy.states() == ["done", "done"]


@pytest.mark.usefixtures("done")
def test_resuming_what_is_done_says_so(operant: Operant) -> None:
    again = operant("resume", "toy")
    assert again.code == 0
    assert "every session is done; nothing to resume" in again.out
    assert operant("resume", "toy", "--json").document["resumed"] == 0


def test_one_session_of_a_run_can_be_resumed(operant: Operant, toy: Toy) -> None:
    operant("train", "toy.yaml", "--until", "50")
    resumed = operant("resume", str(toy.sessions()[1].path))
    assert resumed.code == 0, resumed.err
    assert toy.states() == ["stopped", "done"]


def test_a_run_can_be_resumed_from_inside_it(operant: Operant, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    operant("train", "toy.yaml", "--until", "50", "--sessions", "1")
    monkeypatch.chdir(toy.sessions()[0].path)
    assert operant("resume", ".").code == 0
    assert toy.states() == ["done"]


def test_a_fork_names_its_parent_and_continues_its_curve(operant: Operant, toy: Toy) -> None:
    operant("train", "toy.yaml", "--sessions", "1")
    (parent,) = toy.sessions()
    fork = operant("resume", "toy", "-s", "env.max_frame=150")
    assert fork.code == 0, fork.err
    assert "session_0 continues at frame 100 of 150" in fork.out
    (made,) = toy.sessions()
    assert made.path != parent.path
    assert made.parent is not None
    assert toy.folder / made.parent["run"] == parent.path
    rows = [json.loads(line) for line in (made.path / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["frames"] == 110
    assert "begun at its frame 100" in operant("show", "toy").out


def test_a_failure_says_which_when_why_and_how_to_go_on(operant: Operant, toy: Toy) -> None:
    toy.write(fail_at=70, fail_seed=1)
    failed = operant("train", "toy.yaml")
    assert failed.code == 3
    failure = failed.out[failed.out.index("session_1 (seed 1) failed") :].splitlines()
    assert failure[0] == "session_1 (seed 1) failed at frame 60: RuntimeError: the toy broke"
    assert failure[1] == "  last checkpoint: frame 50"
    assert Path(failure[2].split()[-1]).read_text().count("Traceback") == 1
    assert failure[3].startswith("  continue:        operant resume runs/toy/")
    assert "Traceback" not in failed.out + failed.err
    assert toy.states() == ["done", "failed"]


def test_a_corrupt_checkpoint_is_reported_and_resume_falls_back(operant: Operant, toy: Toy) -> None:
    operant("train", "toy.yaml", "--until", "80", "--sessions", "1")
    (run,) = toy.sessions()
    (run.checkpoints / "000000000080" / "frames.json").write_text("81")
    resumed = operant("resume", "toy")
    assert resumed.code == 0, resumed.err
    assert "session_0 corrupt_checkpoint: " in resumed.err
    assert "000000000080/frames.json: the content differs from what was saved" in resumed.err
    assert run.state == "done"


@pytest.mark.usefixtures("done")
def test_looking_at_a_finished_run(operant: Operant) -> None:
    (row,) = operant("runs", "--json").document["runs"]
    assert (row["name"], row["state"], row["sessions_done"]) == ("toy", "done", 2)
    assert "toy/" in operant("runs").out

    shown = operant("show", "latest", "--json").document
    assert [each["frames"] for each in shown["sessions"][0]["checkpoints"]] == [50, 100]
    assert shown["trials"][0]["path"] == f"{row['path']}/trial_000"
    assert "train/return, mean of 2 seeds" in operant("show", "toy").out

    files = operant("plot", "toy", "--metric", "eval/score", "--x", "updates", "--json").document["files"]
    assert [Path(file).suffix for file in files] == [".svg", ".png", ".csv"]
    assert all(Path(file).is_file() for file in files)


def test_eval_scores_every_session_and_keeps_the_episodes(operant: Operant, done: Toy) -> None:
    told = operant("eval", "toy", "--episodes", "3", "--seed", "9", "--json").document
    assert [row["score"] for row in told["sessions"]] == [100.0, 101.0]
    assert told["score"]["point"] == 100.5
    kept = [json.loads(line) for line in (done.sessions()[1].path / "eval.jsonl").read_text().splitlines()]
    assert [(row["seed"], row["score"]) for row in kept] == [(9, 101.0), (10, 101.0), (11, 101.0)]
    words = operant("eval", "toy", "--checkpoint", "50", "--episodes", "2").out
    assert "session_0 at frame 50: 50.00" in words
    assert "mean greedy return over 2 sessions, 2 episodes each" in words


def test_watch_without_a_screen_makes_a_film(operant: Operant, done: Toy) -> None:
    film = Path(operant("watch", "toy", "--json").document["film"])
    assert film.absolute().parent in [run.path / "media" for run in done.sessions()]
    assert film.suffix == ".gif"
    assert operant("watch", "toy", "--out", "mine.gif").code == 0
    assert Path("mine.gif").exists()
    assert operant("watch", "toy", "--out", "mine.gif").code == 2


def test_check_estimates_the_whole_trial_and_writes_nothing(operant: Operant, toy: Toy) -> None:
    told = operant("check", "toy.yaml", "-s", "meta.max_session=4", "--json").document
    assert told["estimate"]["disk_bytes"] == 20_000_000
    words = operant("check", "toy.yaml").out
    assert words.startswith("ok  toy: ppo on Toy-v0, 2 sessions (seeds 0 to 1) of 100 frames\n")
    assert "1,234 parameters; 1k frames/s per session" in words
    assert "10 MB of disk" in words
    assert [path.name for path in toy.folder.iterdir()] == ["toy.yaml"]


def test_a_search_block_is_not_run_in_silence(operant: Operant, toy: Toy) -> None:
    with (toy.folder / "toy.yaml").open("a") as spec:
        spec.write("search:\n  agent.algorithm.gamma__uniform: [0.9, 0.99]\n")
    done = operant("train", "toy.yaml", "--sessions", "1")
    assert done.code == 0, done.err
    assert "the spec has a search block: `train` runs its base setting only" in done.out
