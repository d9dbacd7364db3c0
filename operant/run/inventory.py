"""What a run directory must hold by its state, and what it means when something of it is gone.

`faults` names every file that is missing, cannot be read or is shorter than a checkpoint says, with what is lost.
Logs and media are for people and may be removed. The content of checkpoints is verified where it is used, not here.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import OperantError
from operant.run.checkpoint import Checkpoint, CorruptCheckpoint, read_manifest
from operant.run.layout import (
    ANCHORS_FILE,
    CHECKPOINTS_FOLDER,
    EPISODES_FILE,
    EVENTS_FILE,
    EXPERIMENT_FILE,
    METRICS_FILE,
    PROMPTS_FILE,
    RESOLVED_FILE,
    RUN_FILE,
    SPEC_STEM,
    checkpoint_paths,
    provenance_path,
    session_path,
    session_paths,
    shown,
    trial_paths,
)
from operant.run.metrics import read_last_row
from operant.run.run import Run, read_session

# What each log is good for, when it is gone.
LOST = {
    METRICS_FILE: "the curve, the scores and the speed of this session up to there are lost",
    EPISODES_FILE: "the episodes of this session up to there are lost",
    PROMPTS_FILE: "what became of each prompt up to there can no longer be shown",
}


@dataclass(frozen=True)
class Fault:
    """A fault of a run directory; with `harms_resume` a resume would continue with rows missing, or start at 0."""

    path: Path
    problem: str
    meaning: str
    harms_resume: bool = False

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.problem}: {self.meaning}"


def faults(place: Path) -> list[Fault]:
    """Everything that is missing or damaged in an experiment, a trial or a session, its gravest session files last."""
    place = Path(place)
    if (place / RUN_FILE).exists():
        return list(_of_session(place))
    trials = trial_paths(place)
    if not trials:
        return [fault for session in session_paths(place) for fault in _of_session(session)]
    found = list(_of_experiment(place))
    for trial in trials:
        found += _absent_sessions(place, trial)
        found += [fault for session in session_paths(trial) for fault in _of_session(session)]
    return found


def resume_faults(run: Run, document: dict[str, Any], state: str) -> list[Fault]:
    """Those faults of a session that harm a resume, with no more read than its newest checkpoint's manifest.

    `document` is its run.json and `state` its state, as they were read just now.
    """
    if document["attempts"] == 0:
        return []
    paths = checkpoint_paths(run.checkpoints)
    if not paths:
        return [_no_checkpoint(run)] if _should_have_saved(run, document, state) else []
    saved = next((found for path in reversed(paths) if (found := _manifest(path))), None)
    return [fault for fault in _of_logs(run, saved) if fault.harms_resume] if saved else []


def past_losses(session: Path) -> list[str]:
    """Rows that were missing already when an earlier attempt went on without them; its events say so."""
    try:
        lines = (session / EVENTS_FILE).read_bytes().splitlines()
    except OSError:
        return []
    events = [event for line in lines if isinstance(event := _parsed(line), dict)]
    return [str(event.get("message")) for event in events if event.get("kind") == "lost_rows"]


def _of_experiment(path: Path) -> Iterator[Fault]:
    meanings = {
        EXPERIMENT_FILE: "how and when the experiment was started is lost; its sessions are not touched by that",
        RESOLVED_FILE: "a fork (operant resume -s) cannot be made; plain resume needs only the sessions",
    }
    for name, meaning in meanings.items():
        yield from _of_document(path / name, meaning)
    if not any(entry.stem == SPEC_STEM for entry in path.iterdir()):
        yield Fault(path / f"{SPEC_STEM}.yaml", "is missing", f"the spec as it was written; {RESOLVED_FILE} has it all")


def _absent_sessions(experiment: Path, trial: Path) -> Iterator[Fault]:
    """Sessions that the spec asks for; a fork has those of its parent, however many these were."""
    document, spec = _read(experiment / EXPERIMENT_FILE), _read(experiment / RESOLVED_FILE)
    if document is None or spec is None or document.get("parent") is not None:
        return
    for index in range(int(spec.get("meta", {}).get("max_session", 0))):
        path = session_path(trial, index)
        if not path.is_dir():
            yield Fault(path, "is missing", "this seed is lost, and every score is over the other seeds only")


def _of_session(path: Path) -> Iterator[Fault]:
    try:
        run, document = read_session(path)
        state, attempts = run.state_by(document), document["attempts"]
    except OperantError:
        yield from _of_document(path / RUN_FILE, "nothing of this session can be resumed or shown", harms=True)
        return
    if attempts == 0:
        return
    saved, broken = _checkpoints(run, document, state)
    yield from broken
    if state != "running" or saved:
        yield from _of_logs(run, saved)
    if state != "running":
        yield from _of_the_record(run, attempts, saved)


def _of_logs(run: Run, saved: Checkpoint | None) -> Iterator[Fault]:
    for name, meaning in LOST.items():
        file, expected = run.path / name, 0 if saved is None else saved.offsets.get(name, 0)
        if name == PROMPTS_FILE and not expected:  # no run of prompts, or one from before there was a journal
            continue
        problem = _unreadable(file)
        if problem is not None:
            yield Fault(file, problem, meaning, harms_resume=expected > 0)
        elif expected and (size := file.stat().st_size) < expected:
            at = "" if saved is None else f" at frame {saved.at.frames:,}"
            yield Fault(file, f"lacks {expected - size:,} of the {expected:,} bytes it had{at}", meaning, True)


def _of_the_record(run: Run, attempts: int, saved: Checkpoint | None) -> Iterator[Fault]:
    problem = _unreadable(run.path / EVENTS_FILE)
    if problem is not None:
        yield Fault(run.path / EVENTS_FILE, problem, "the history of the attempts is lost; training is not affected")
    for attempt in range(1, attempts + 1):
        file = provenance_path(run.path, attempt)
        problem = _unreadable(file)
        if problem is not None:
            yield Fault(file, problem, "which code and packages that attempt ran is lost")
    problem = _unreadable(run.path / ANCHORS_FILE)
    if saved is not None and problem is not None:
        yield Fault(run.path / ANCHORS_FILE, problem, "the reference scores, and with them the strength, are lost")


def _checkpoints(run: Run, document: dict[str, Any], state: str) -> tuple[Checkpoint | None, list[Fault]]:
    """The newest checkpoint with a readable manifest, and what is wrong with any."""
    newest, found = None, []
    for path in checkpoint_paths(run.checkpoints):
        try:
            newest = read_manifest(path)
        except CorruptCheckpoint as problem:
            found.append(Fault(path, f"is no checkpoint ({problem.cause})", "a resume sets it aside"))
            continue
        for name in newest.files:
            if (problem := _unreadable(path / name)) is not None:
                found.append(Fault(path / name, problem, "a resume sets this checkpoint aside"))
    if newest is None and not found and _should_have_saved(run, document, state):
        found.append(_no_checkpoint(run))
    return newest, found


def _no_checkpoint(run: Run) -> Fault:
    meaning = "the policy is lost, and a resume starts at frame 0"
    return Fault(run.path / CHECKPOINTS_FOLDER, "holds no checkpoint", meaning, harms_resume=True)


def _manifest(checkpoint: Path) -> Checkpoint | None:
    try:
        return read_manifest(checkpoint)
    except CorruptCheckpoint:
        return None


def _should_have_saved(run: Run, document: dict[str, Any], state: str) -> bool:
    """Whether so much was trained that a checkpoint must have been there; a search removes those of lesser trials."""
    if document.get("checkpoints_removed"):
        return False
    if state == "done":
        return True
    frames = read_last_row(run.path / METRICS_FILE).get("frames")
    return isinstance(frames, int) and frames > int(run.spec.get("meta", {}).get("save_frequency", frames))


def _of_document(file: Path, meaning: str, harms: bool = False) -> Iterator[Fault]:
    problem = _unreadable(file)
    if problem is None and _read(file) is None:
        problem = "is empty" if file.stat().st_size == 0 else "is no JSON object"
    if problem is not None:
        yield Fault(file, problem, meaning, harms)


def _unreadable(file: Path) -> str | None:
    """Why a file cannot be read, if it cannot."""
    try:
        mode = os.stat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "is a link to nothing" if file.is_symlink() else "is missing"
    if not stat.S_ISREG(mode):
        return "is not a file"
    return None if os.access(file, os.R_OK) else "cannot be read (permission denied)"


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document = _parsed(file.read_bytes())
    except OSError:
        return None
    return document if isinstance(document, dict) else None


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
