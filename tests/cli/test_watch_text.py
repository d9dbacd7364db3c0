"""`operant watch` of a run of a language model, whose answers are read and not recorded as video."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from operant.engines import language
from operant.run import checkpoint as checkpoints
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress
from operant.run.run import Run
from operant.spec.load import load

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.fixture
def run(here: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A session whose only checkpoint answers one problem, on a machine without a screen."""
    for screen in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(screen, raising=False)

    def answers(*_: Any) -> list[Episode]:
        turns = (Turn("user", "copy ab"), Turn("assistant", "ab"))
        return [Episode("copy", "eval", 7, Progress(64), 1.0, 1, "terminated", turns=turns, item="copy/7")]

    monkeypatch.setattr(language, "evaluate", answers)
    spec = load("grpo_tiny").spec.model_dump(mode="json")
    made = Run.create(here / "session_0", name="mine", spec=spec, seed=0, session=0, threads=1)
    checkpoints.publish(made.checkpoints, Progress(64), lambda place: (place / "weights").touch())
    return made


def test_no_video_is_named_that_does_not_exist(operant: Operant, run: Run) -> None:
    told = operant("watch", str(run.path))
    assert told.code == 0, told.err
    assert "assistant: ab" in told.out
    assert ".gif" not in told.out + told.err


def test_the_document_stands_alone_and_names_no_video(operant: Operant, run: Run) -> None:
    told = operant("watch", str(run.path), "--json")
    assert told.document["film"] is None
    assert "assistant: ab" in told.err


def test_a_text_is_written_where_it_is_said_to_be(operant: Operant, run: Run, here: Path) -> None:
    told = operant("watch", str(run.path), "--out", "answers.txt")
    assert "text: answers.txt" in told.out
    assert "assistant: ab" in (here / "answers.txt").read_text()
