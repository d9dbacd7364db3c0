"""What a list of runs says of damage agrees with the thorough look."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_trainer import make_run, train

from operant.run.inventory import faults, resume_faults
from operant.run.progress import Progress
from operant.run.prompt_journal import PromptJournal
from operant.run.run import read_session


def lose_checkpoints(session: Path) -> None:
    shutil.rmtree(session / "checkpoints")


def tear_newest_manifest(session: Path) -> None:
    sorted((session / "checkpoints").glob("*/manifest.json"))[-1].write_text("{")


def cut_metrics(session: Path) -> None:
    (session / "metrics.jsonl").write_text("")


def lose_episodes(session: Path) -> None:
    (session / "episodes.jsonl").unlink()


def lose_what_resumes_do_without(session: Path) -> None:
    (session / "events.jsonl").unlink()
    (session / "anchors.json").unlink()


@pytest.mark.parametrize(
    ("damage", "count"),
    [
        ([], 0),
        ([lose_checkpoints], 1),
        ([tear_newest_manifest], 0),
        ([cut_metrics], 1),
        ([cut_metrics, lose_episodes], 2),
        ([tear_newest_manifest, lose_episodes], 1),
        ([lose_what_resumes_do_without], 0),
    ],
)
def test_the_quick_look_finds_what_harms_a_resume(
    tmp_path: Path, damage: list[Callable[[Path], None]], count: int
) -> None:
    path = tmp_path / "session_0"
    train(make_run(path))
    for harm in damage:
        harm(path)
    run, document = read_session(path)
    found = resume_faults(run, document, run.state)
    assert len(found) == count
    assert found == [fault for fault in faults(path) if fault.harms_resume]


def test_a_session_that_never_began_lacks_nothing(tmp_path: Path) -> None:
    run, document = read_session(make_run(tmp_path / "session_0").path)
    assert resume_faults(run, document, run.state) == []


@pytest.mark.parametrize("kept", [None, 0, 5])
def test_a_prompt_journal_that_is_gone_or_shorter_is_a_fault(tmp_path: Path, kept: int | None) -> None:
    run = make_run(tmp_path / "session_0")
    journal = run.path / "prompts.jsonl"
    with run.session() as session:
        log = PromptJournal(run.path, 1)
        session.note_offsets_of(log)
        log.start(0, 0, [], 0)
        session.anchor("start", 0.0)
        session.save(Progress(), lambda folder: (folder / "w").write_text("w"))
    assert faults(run.path) == []
    if kept is None:
        journal.unlink()
    else:
        journal.write_bytes(journal.read_bytes()[:kept])
    (fault,) = faults(run.path)
    assert (fault.path, fault.harms_resume) == (journal, True)
