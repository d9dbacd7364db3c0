"""`operant eval --tasks` and `operant serve`: models and runs by name, records on disk, a watcher of checkpoints."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest

from operant.cli.files import record_folder
from operant.run import checkpoint as checkpoints
from operant.run.progress import Progress
from operant.run.run import Run
from operant.spec.load import load

if TYPE_CHECKING:
    from tests.cli.conftest import Operant

ROOT = Path(__file__).parents[2]
ASK = ("--tasks", "copy", "--limit", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model as a Hugging Face folder."""
    from operant.engines.language.policy.model import load_policy, write_folder
    from operant.engines.language.policy.tiny import TinySizes

    return write_folder(load_policy("tiny", tiny=TinySizes(2, 32, 2, 128)), tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def run(here: Path, folder: Path) -> Run:
    """A session of the language engine with one checkpoint, at frame 64."""
    spec = load("grpo_tiny").spec.model_dump(mode="json")
    made = Run.create(here / "session_0", name="mine", spec=spec, seed=0, session=0, threads=1)
    save(made, folder, 64)
    return made


def save(run: Run, folder: Path, frames: int) -> None:
    checkpoints.publish(
        run.checkpoints, Progress(frames), lambda place: shutil.copytree(folder, place, dirs_exist_ok=True)
    )


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_model_is_evaluated_into_a_folder_of_its_own(operant: Operant, folder: Path, here: Path) -> None:
    told = operant("eval", str(folder), *ASK, "-a", "style=bare", "--samples", "3")
    assert told.code == 0, told.err
    head, line = (each.split() for each in told.out.splitlines()[1:])
    assert head == [
        "task",
        "items",
        "score",
        "pass@1",
        "pass@2",
        "pass@3",
        "unparsed",
        "truncated",
        "errors",
        "tokens/s",
    ]
    assert line[:2] == ["copy", "4"]
    (place,) = (here / "runs" / "eval" / "small").iterdir()
    episodes = rows(place / "episodes.jsonl")
    assert len(episodes) == 12
    assert len({row["item"] for row in episodes}) == 4
    summary = json.loads((place / "eval.json").read_text())
    assert summary["paper"]["samples"] == 3
    assert summary["scores"][0]["passes"].keys() == {"pass@1", "pass@2", "pass@3"}


def test_a_run_is_evaluated_beside_its_own_records(operant: Operant, run: Run) -> None:
    told = operant("eval", str(run.path), *ASK, "--json").document
    (row,) = told["examined"]
    assert (row["frames"], row["tasks"][0]["task"], row["tasks"][0]["score"]["n"]) == (64, "copy", 4)
    kept = rows(run.path / "eval.jsonl")
    assert [each["frames"] for each in kept] == [64] * 4
    # The spec's own arguments: bare prompts.
    assert all(each["turns"][0]["text"].startswith("copy:") for each in kept)


def test_a_wish_about_tasks_needs_tasks(operant: Operant, run: Run) -> None:
    told = operant("eval", str(run.path), "--limit", "3")
    assert (told.code, told.err.splitlines()[0]) == (2, "--limit needs --tasks")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("nobody", *ASK), "there is no run and no model 'nobody'"),
        (("FOLDER", "--tasks", "gms8k"), "there is no task 'gms8k'"),
        (("FOLDER", "--tasks", ","), "--tasks names no task"),
        (("FOLDER", *ASK, "--shots", "2"), "none of copy takes an argument 'shots'"),
        (("FOLDER", *ASK, "--follow"), "--follow needs a run"),
        (("FOLDER", *ASK, "--device", "tpu"), "there is no device 'tpu'"),
        (("FOLDER", *ASK, "--harness", "helm"), "there is no harness 'helm'"),
        (("FOLDER", *ASK, "--url", "localhost"), "'localhost' is no address of a server"),
        (("FOLDER",), "there is no run 'FOLDER'"),
    ],
)
def test_mistakes_are_told_in_words(
    operant: Operant, folder: Path, here: Path, words: tuple[str, ...], cause: str
) -> None:
    told = operant("eval", *(str(folder) if word == "FOLDER" else word for word in words))
    assert told.code == 2, told.err
    assert cause.replace("FOLDER", str(folder)) in told.err
    assert "Traceback" not in told.err
    assert not (here / "runs").exists()


def in_turn(monkeypatch: pytest.MonkeyPatch, *events: Callable[[], None]) -> None:
    """A run that goes on while these events happen, one each time that the watcher sleeps, and is then over."""
    left = list(events)
    monkeypatch.setattr(Run, "state", property(lambda _: "running" if left else "done"))
    monkeypatch.setattr("operant.cli.model_evaluation.time.sleep", lambda _: left.pop(0)())


def test_follow_evaluates_each_new_checkpoint_until_the_run_is_over(
    operant: Operant, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_turn(monkeypatch, lambda: None, lambda: save(run, folder, 128), lambda: save(run, folder, 192))
    told = operant("eval", str(run.path), *ASK, "--follow")
    assert told.code == 0, told.err
    assert [line for line in told.out.splitlines() if line.startswith("session_0")] == [
        "session_0 at frame 64",
        "session_0 at frame 128",
        "session_0 at frame 192",
    ]
    assert told.out.splitlines()[-1] == "the run is over; 3 checkpoints evaluated"
    assert [row["frames"] for row in rows(run.path / "eval.jsonl")] == [64] * 4 + [128] * 4 + [192] * 4


def test_a_checkpoint_that_was_pruned_meanwhile_is_skipped_and_said_so(
    operant: Operant, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(run, folder, 128)
    real = checkpoints.verify

    def late(path: Path) -> checkpoints.Checkpoint:
        if path.name.endswith("64"):
            shutil.rmtree(path)
        return real(path)

    monkeypatch.setattr(checkpoints, "verify", late)
    in_turn(monkeypatch)
    told = operant("eval", str(run.path), *ASK, "--follow")
    assert told.code == 0, told.err
    assert "session_0: the checkpoint at frame 64 was removed before it could be evaluated" in told.err
    assert "the run is over; 1 checkpoint evaluated" in told.out


def test_a_watcher_stops_at_a_checkpoint_that_is_there_and_wrong(operant: Operant, run: Run) -> None:
    (run.checkpoints / "000000000064" / "config.json").write_text("{}")
    told = operant("eval", str(run.path), *ASK, "--follow")
    assert told.code == 3
    assert "the content differs from what was saved" in told.err


def test_a_run_is_served_until_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = [sys.executable, "-m", "operant", "serve", str(run.path), "--name", "mine", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        facts = json.loads("".join(lines))
        body = {"model": "mine", "prompt": "copy:ab=", "max_tokens": 3, "temperature": 0}
        with urlopen(Request(f"{facts['url']}/completions", json.dumps(body).encode()), timeout=60) as reply:
            assert json.load(reply)["usage"]["completion_tokens"] == 3
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "ended"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--host", "0.0.0.0"), "there is no API key"),
        (("--api-key-env", "NO_SUCH_KEY"), "the environment variable NO_SUCH_KEY is not set"),
        (("--allow-host", "lab:80"), "'lab:80' is no host name"),
        (("--allow-origin", "lab"), "'lab' is no origin"),
    ],
)
def test_a_server_that_would_be_open_is_refused_before_anything_is_loaded(
    operant: Operant, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], cause: str
) -> None:
    monkeypatch.delenv("OPERANT_API_KEY", raising=False)
    told = operant("serve", "absent", *words)
    assert (told.code, cause in told.err, "try: " in told.err) == (2, True, True)


def test_a_game_is_not_served(operant: Operant, here: Path) -> None:
    spec = load("ppo_cartpole").spec.model_dump(mode="json")
    Run.create(here / "session_0", name="game", spec=spec, seed=0, session=0, threads=1)
    for words in (("serve", "session_0"), ("eval", "session_0", *ASK)):
        told = operant(*words)
        assert (told.code, "has no language model" in told.err) == (2, True)


def test_evaluations_that_begin_in_one_second_have_a_folder_each(tmp_path: Path) -> None:
    folders = {record_folder("some/model", tmp_path, None) for _ in range(5)}
    assert len(folders) == 5
    assert {folder.parent for folder in folders} == {tmp_path / "eval" / "model"}
