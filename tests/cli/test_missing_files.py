"""Files that somebody deleted from a run: every command names them, and none calls such a run finished."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.launch.prepare import create_trial

if TYPE_CHECKING:
    from tests.cli.conftest import Operant, Toy


def trained(stamp: str, until: int | None = None) -> Path:
    """The first session of a run of two, trained in this process."""
    from operant.engines import load as load_engine
    from operant.spec.load import load

    loaded = load("toy.yaml", None, [])
    runs = create_trial(
        loaded.spec.model_dump(mode="json"),
        root=Path("runs"),
        out=Path("runs/toy") / stamp,
        source_text=loaded.source,
        source_suffix=".yaml",
        command=["operant"],
    )
    for run in runs:
        load_engine("torch").train(run, until)
    return runs[0].path.resolve()


@pytest.fixture
def session(toy: Toy) -> Path:
    """The first session of a finished run of two."""
    return trained("20260101-000000")


READERS = ("show toy", "eval toy", "watch toy", "plot toy", "compare toy toy", "resume toy")


def told(operant: Operant, words: str) -> tuple[int, str]:
    result = operant(*words.split())
    return result.code, result.out + result.err


@pytest.mark.parametrize("words", READERS)
def test_a_session_without_its_run_file_is_named_by_every_command(operant: Operant, session: Path, words: str) -> None:
    (session / "run.json").unlink()
    code, said = told(operant, words)
    assert code != 0
    assert "trial_000/session_0: run.json is missing" in said
    assert "nothing to resume" not in said


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl"])
def test_a_deleted_log_is_named_by_every_command(operant: Operant, session: Path, name: str, words: str) -> None:
    (session / name).unlink()
    _, said = told(operant, words)
    assert f"session_0/{name} is missing" in said


def test_a_whole_run_says_nothing_of_the_kind(operant: Operant, session: Path) -> None:
    for words in READERS:
        code, said = told(operant, words)
        assert (code, "warning" in said) == (0, False), said


def delete_checkpoints(session: Path) -> None:
    shutil.rmtree(session / "checkpoints")


def delete_a_checkpoint_file(session: Path) -> None:
    sorted((session / "checkpoints").glob("*/frames.json"))[-1].unlink()


def cut_in_half(session: Path) -> None:
    rows = (session / "metrics.jsonl").read_bytes()
    (session / "metrics.jsonl").write_bytes(rows[: len(rows) // 2])


def link_to_nothing(session: Path) -> None:
    (session / "metrics.jsonl").unlink()
    (session / "metrics.jsonl").symlink_to("elsewhere.jsonl")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "checkpoints": (delete_checkpoints, "session_0/checkpoints holds no checkpoint"),
    "checkpoint_file": (delete_a_checkpoint_file, "frames.json is missing: a resume sets this checkpoint aside"),
    "truncated": (cut_in_half, "session_0/metrics.jsonl lacks"),
    "dangling_link": (link_to_nothing, "session_0/metrics.jsonl is a link to nothing"),
    "events": (lambda at: (at / "events.jsonl").unlink(), "session_0/events.jsonl is missing"),
    "provenance": (lambda at: shutil.rmtree(at / "provenance"), "session_0/provenance/attempt_001.json is missing"),
    "anchors": (lambda at: (at / "anchors.json").unlink(), "session_0/anchors.json is missing"),
    "resolved": (lambda at: (at.parents[1] / "resolved.json").unlink(), "resolved.json is missing"),
    "spec": (lambda at: (at.parents[1] / "spec.yaml").unlink(), "spec.yaml is missing"),
    "experiment": (lambda at: (at.parents[1] / "experiment.json").write_text(""), "experiment.json is empty"),
    "no_experiment": (lambda at: (at.parents[1] / "experiment.json").unlink(), "experiment.json is missing"),
    "session": (shutil.rmtree, "trial_000/session_0 is missing: this seed is lost"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_whatever_is_gone_is_named(operant: Operant, session: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    damage(session)
    _, said = told(operant, "show toy")
    assert words in said
    assert "defect" not in said


def test_resume_goes_on_with_a_hole_only_where_one_says_so_and_it_stays_known(operant: Operant, toy: Toy) -> None:
    session = trained("20260101-000000", until=50)
    (session / "metrics.jsonl").unlink()
    refused = operant("resume", "toy")
    assert refused.code == 3
    assert "metrics.jsonl is missing" in refused.err
    assert "--accept-loss" in refused.err
    assert toy.states() == ["stopped", "stopped"]
    assert operant("resume", "toy", "--accept-loss").code == 0
    assert toy.states() == ["done", "done"]
    rows = [json.loads(line)["frames"] for line in (session / "metrics.jsonl").read_text().splitlines()]
    assert min(rows) > 50
    assert "an earlier resume went on without them" in operant("show", "toy").err


def test_a_run_that_lost_all_its_sessions_is_no_finished_run(operant: Operant, session: Path) -> None:
    shutil.rmtree(session.parent)
    code, said = told(operant, f"resume {session.parents[1]}")
    assert code == 3
    assert "this experiment holds no session" in said


def test_the_list_of_runs_survives_and_names_it(operant: Operant, session: Path) -> None:
    (session / "run.json").write_text("")
    listed = operant("runs")
    assert listed.code == 0
    assert "unreadable" in listed.out
    assert "run.json" in listed.out


def test_a_newer_run_that_lost_its_document_is_not_passed_over_for_an_older_one(
    operant: Operant, toy: Toy, session: Path
) -> None:
    trained("29991231-235959")
    Path("runs/toy/29991231-235959/experiment.json").unlink()
    _, said = told(operant, "show toy")
    assert "29991231-235959/experiment.json is missing" in said
