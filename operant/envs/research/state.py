"""The state of a rollout as bytes: a checkpoint, which is the rollout itself, or a snapshot to begin another from.

Nothing is pickled: plain facts, and files by their names.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from operant.envs.research.settings import Settings
from operant.envs.sandbox.base import unarchived
from operant.errors import UsageError


@dataclass
class Usage:
    """What a rollout has used. `previous` is the normalized score of the last validation."""

    turns: int = 0
    seconds: float = 0.0
    validations: int = 0
    faults: int = 0
    previous: float | None = None


@dataclass(frozen=True)
class Start:
    """Where a rollout begins: at the files of its problem, or at another's snapshot, in files or in an archive.

    `artefacts` is the digest of what was there to be graded at the snapshot: who changes none of it has no score of
    its own.
    """

    tally: Usage = field(default_factory=Usage)
    files: Mapping[str, bytes] | None = None
    base: bytes | None = None
    artefacts: str | None = None


@dataclass(frozen=True)
class Validated:
    """A validation: the score as it was shown, the same normalized, and what was scored."""

    shown: float
    normalized: float
    artefacts: Mapping[str, bytes]


@dataclass
class RolloutState:
    """All that a rollout knows beside its workspace.

    `refused` says why artefacts were not taken, `final` has those that are graded, `broken` why there is no sandbox;
    `interrupted` is one whose sandbox died since the policy was last told anything.
    """

    tally: Usage
    validated: list[Validated] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    final: dict[str, bytes] | None = None
    ended: bool = False
    broken: str = ""
    interrupted: bool = False
    tool_errors: int = 0


def encode_checkpoint(
    state: RolloutState, start: Start, files: Mapping[str, bytes], base: bytes | None, reopened: int
) -> bytes:
    """A rollout with its workspace: the files that were written over the archive `base`, and how often it died."""
    facts = {
        "state": {
            **vars(state),
            "tally": asdict(state.tally),
            "validated": [{**vars(each), "artefacts": _texts(each.artefacts)} for each in state.validated],
            "final": None if state.final is None else _texts(state.final),
        },
        "start": {"tally": asdict(start.tally), "artefacts": start.artefacts},
        "files": _texts(files),
        "reopened": reopened,
        "has_base": base is not None,
    }
    return json.dumps(facts).encode() + b"\n" + (base or b"")


def decode_checkpoint(data: bytes) -> tuple[RolloutState, Start, int]:
    """The state, where its workspace begins, and how often that died."""
    head, _, base = data.partition(b"\n")
    facts = json.loads(head)
    kept, start = facts["state"], facts["start"]
    state = RolloutState(
        **{
            **kept,
            "tally": Usage(**kept["tally"]),
            "validated": [Validated(**{**each, "artefacts": _files(each["artefacts"])}) for each in kept["validated"]],
            "final": None if kept["final"] is None else _files(kept["final"]),
        }
    )
    files, archive = _files(facts["files"]), base if facts["has_base"] else None
    return state, Start(Usage(**start["tally"]), files, archive, start["artefacts"]), facts["reopened"]


def start_from(settings: Settings, problem: int, snapshot: bytes) -> Start:
    """Where a snapshot was taken; `UsageError` for one of another problem."""
    head, _, archive = snapshot.partition(b"\n")
    facts = json.loads(head)
    if (facts["task"], facts["problem"]) != (settings.folder.task.name, problem):
        raise UsageError(f"this snapshot is of {facts['task']}, problem {facts['problem']}, not of problem {problem}")
    files = unarchived(archive) if facts["on_paper"] else {}
    return Start(Usage(**facts["tally"]), files, None if facts["on_paper"] else archive, facts["artefacts"])


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(data).decode() for name, data in files.items()}


def _files(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {name: b64decode(text) for name, text in texts.items()}
