"""Every file and folder name of a run, in one place.

runs/<spec>/<stamp>/            experiment
  spec.yaml  resolved.json  experiment.json  tags.json  store.json  sync.json  sync.log
  search.json  search.db        of a search; its trials have a resolved.json each
  trial_000/session_0/          one seed
    run.json  lock  anchors.json  cost.json  phase.json
    metrics.jsonl  episodes.jsonl  events.jsonl  trace.json  prompts.jsonl  rollouts/
    checkpoints/000000020480/manifest.json   checkpoints/latest   checkpoints/best
    provenance/attempt_001.json   logs/attempt_001.log   media/   track/tensorboard.json
  report/
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

FORMAT = 1

EXPERIMENT_FILE = "experiment.json"
RESOLVED_FILE = "resolved.json"
SEARCH_FILE = "search.json"
SPEC_STEM = "spec"
TAGS_FILE = "tags.json"
REPORT_FOLDER = "report"
TRANSFER_FILE = "store.json"
SYNC_FILE = "sync.json"
SYNC_LOG = "sync.log"

RUN_FILE = "run.json"
LOCK_FILE = "lock"
ANCHORS_FILE = "anchors.json"
COST_FILE = "cost.json"
METRICS_FILE = "metrics.jsonl"
EPISODES_FILE = "episodes.jsonl"
EVALUATIONS_FILE = "eval.jsonl"
EVENTS_FILE = "events.jsonl"
TRACE_FILE = "trace.json"
PROMPTS_FILE = "prompts.jsonl"
ROLLOUTS_FOLDER = "rollouts"
PHASE_FILE = "phase.json"
RESERVE_FILE = ".reserve"
CHECKPOINTS_FOLDER = "checkpoints"
PROVENANCE_FOLDER = "provenance"
LOGS_FOLDER = "logs"
TRACK_FOLDER = "track"
MEDIA_FOLDER = "media"

MANIFEST_FILE = "manifest.json"
POLICY_FILE = "policy.safetensors"
LEARNER_FILE = "learner.safetensors"
FACTS_FILE = "learner.json"
HELD_FILE = "held"
LATEST_LINK = "latest"
BEST_LINK = "best"
LEFTOVER_PREFIX = ".tmp-"
REPLACED_PREFIX = ".old-"
CORRUPT_SUFFIX = ".corrupt"

_TRIAL = re.compile(r"trial_(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_CHECKPOINT = re.compile(r"\d{12,}")


def stamp(now: datetime) -> str:
    """The folder name of an experiment begun at `now`."""
    return now.strftime("%Y%m%d-%H%M%S")


def timestamp() -> str:
    """The time now, as it is written into files: ISO 8601, UTC, sortable as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def trial_path(experiment: Path, index: int) -> Path:
    """The folder of one setting."""
    return Path(experiment) / f"trial_{index:03d}"


def session_path(trial: Path, index: int) -> Path:
    """The folder of one seed: the run directory proper."""
    return Path(trial) / f"session_{index}"


def trial_paths(experiment: Path) -> list[Path]:
    """The trials of an experiment, in order."""
    return _numbered(experiment, _TRIAL)


def session_paths(trial: Path) -> list[Path]:
    """The sessions of a trial, in order."""
    return _numbered(trial, _SESSION)


def is_session_path(path: Path) -> bool:
    """Whether a folder is one of a trial's sessions, by its name and its parent's."""
    named = _SESSION.fullmatch(path.name) and _TRIAL.fullmatch(path.parent.name)
    return bool(named) and path.is_dir()


def checkpoint_path(checkpoints: Path, frames: int) -> Path:
    """The folder of the checkpoint taken at `frames`."""
    return Path(checkpoints) / f"{frames:012d}"


def checkpoint_paths(checkpoints: Path) -> list[Path]:
    """The published checkpoint folders, good or not, newest last."""
    return _numbered(checkpoints, _CHECKPOINT)


def provenance_path(session: Path, attempt: int) -> Path:
    """What ran, on what, in that attempt."""
    return Path(session) / PROVENANCE_FOLDER / f"attempt_{attempt:03d}.json"


def log_path(session: Path, attempt: int) -> Path:
    """The text log of that attempt."""
    return Path(session) / LOGS_FOLDER / f"attempt_{attempt:03d}.log"


def dropped_path(session: Path, attempt: int, file: str) -> Path:
    """Where an attempt keeps the rows that it had to drop although no checkpoint can reproduce them."""
    return Path(session) / LOGS_FOLDER / f"dropped_attempt_{attempt:03d}_{file}"


def shown(path: Path | str) -> str:
    """A path as one would type it from here: relative when it lies below the working directory."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, FileNotFoundError):
        return str(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def _numbered(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The sub-folders whose whole name fits the pattern, by their number."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if pattern.fullmatch(entry.name) and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Path(folder) / name for name in sorted(names, key=lambda name: int(re.sub(r"\D", "", name)))]
