"""Run directories: created once, opened by anybody, written by one process at a time.

A session is one seed, a trial one setting over its sessions, an experiment a folder of trials. The
directory is the database: everything here is read from it afresh.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.errors import OperantError, RunError, UsageError
from operant.registry import origins, remember
from operant.run.disk import disk_guard, write_json
from operant.run.documents import UsedDirectory, create_documents, damaged, json_text, no_run, read_document
from operant.run.layout import (
    CHECKPOINTS_FOLDER,
    EXPERIMENT_FILE,
    FORMAT,
    LOCK_FILE,
    RESOLVED_FILE,
    RUN_FILE,
    SPEC_STEM,
    is_session_path,
    session_paths,
    shown,
    stamp,
    timestamp,
    trial_path,
    trial_paths,
)
from operant.run.lock import is_held
from operant.run.redaction import redact_command

if TYPE_CHECKING:
    from operant.run.session import Session
    from operant.run.stop import StopRequest

LATEST = "latest"
_STAMP = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?")


@dataclass(frozen=True)
class Run:
    """One session on disk. The fields never change; the properties are read at every use."""

    path: Path
    name: str
    seed: int
    index: int
    spec: dict[str, Any]
    threads: int
    parent: dict[str, Any] | None

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        name: str,
        spec: dict[str, Any],
        seed: int,
        session: int,
        threads: int,
        parent: dict[str, Any] | None = None,
    ) -> Run:
        """Make a new run directory; `UsageError` with the ways out if the place is used already."""
        now = timestamp()
        document = {
            "format": FORMAT,
            "name": name,
            "seed": seed,
            "session": session,
            "spec": spec,
            "threads": threads,
            "state": "new",
            "error": None,
            "attempts": 0,
            "parent": parent,
            "created": now,
            "updated": now,
        }
        own = origins(spec)
        if own:
            document["parts"] = own
        create_documents(Path(path), {RUN_FILE: json_text(document)})
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Run:
        """The run in that directory; `UsageError` saying what is missing if there is none."""
        return cls.of(Path(path), read_document(Path(path), RUN_FILE))

    @classmethod
    def of(cls, path: Path, document: dict[str, Any]) -> Run:
        """The run in that directory, whose run.json was read already."""
        remember(document.get("parts", []))
        try:
            return cls(
                path=path,
                name=document["name"],
                seed=document["seed"],
                index=document["session"],
                spec=document["spec"],
                threads=document["threads"],
                parent=document["parent"],
            )
        except KeyError as missing:
            raise damaged(path / RUN_FILE, f"it has no {missing}") from None

    @property
    def document(self) -> dict[str, Any]:
        """The content of run.json as it is now."""
        return read_document(self.path, RUN_FILE)

    @property
    def state(self) -> str:
        """new, running, stopped, failed or done; a run whose process was killed is stopped."""
        return self.state_by(self.document)

    def state_by(self, document: dict[str, Any]) -> str:
        """The state, from a run.json that was read just now."""
        state = document["state"]
        if state != "running" or is_held(self.path / LOCK_FILE):
            return state
        # Its process may have ended between the two looks, and a process says how it ended before it lets go.
        state = self.document["state"]
        return "stopped" if state == "running" else state

    @property
    def error(self) -> str | None:
        """Why the last attempt failed, if it did."""
        return self.document["error"]

    @property
    def attempts(self) -> int:
        """How many times training was started here."""
        return self.document["attempts"]

    @property
    def max_frame(self) -> int:
        """The full budget in frames."""
        return int(self.spec["env"]["max_frame"])

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS_FOLDER

    def session(self, until: int | None = None, stop: StopRequest | None = None) -> Session:
        """The one object an engine talks to while it trains, for use in a `with` statement.

        Where several sessions share a process they share a `stop`, which the engine opens.
        """
        from operant.run.session import Session

        return Session(self, until, stop)

    def record(self, **changes: Any) -> None:
        """Change fields of run.json. Only the holder of the run's lock may call this."""
        file = self.path / RUN_FILE
        with disk_guard(file, self.path):
            write_json(file, {**self.document, **changes, "updated": timestamp()})


@dataclass(frozen=True)
class Trial:
    """One setting over its sessions."""

    path: Path

    def sessions(self) -> list[Run]:
        """The sessions in order; `RunError` for one without its run.json, which is never passed over in silence."""
        return [read_session(path)[0] for path in session_paths(self.path)]


@dataclass(frozen=True)
class Experiment:
    """A folder of trials with the spec that began it."""

    path: Path

    @property
    def document(self) -> dict[str, Any]:
        """The content of experiment.json."""
        return read_document(self.path, EXPERIMENT_FILE)

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved spec."""
        return read_document(self.path, RESOLVED_FILE)

    def trials(self) -> list[Trial]:
        """The trials in order."""
        return [Trial(path) for path in trial_paths(self.path)]


def create_experiment(
    root: Path,
    spec: dict[str, Any],
    *,
    source_text: str,
    source_suffix: str,
    command: Sequence[str],
    parent: dict[str, Any] | None = None,
    out: Path | None = None,
) -> Experiment:
    """Make the folder of a new experiment: `out`, or `root/<spec name>/<stamp>`.

    A stamp that is taken gets -2, -3 and so on; a given `out` that is used is refused.
    """
    document = {
        "format": FORMAT,
        "spec": spec["name"],
        "created": timestamp(),
        "parent": parent,
        "command": redact_command(command),
    }
    files = {
        SPEC_STEM + source_suffix: source_text,
        RESOLVED_FILE: json_text(spec),
        EXPERIMENT_FILE: json_text(document),
    }
    if out is not None:
        create_documents(Path(out), files)
        return Experiment(Path(out))
    return Experiment(_create_first_free(Path(root) / spec["name"], stamp(datetime.now()), files))


def list_experiments(root: Path) -> list[Experiment]:
    """The experiments under a folder, at most two levels down, newest last."""
    root = Path(root)
    return _newest_last([*_experiments_in(root, "*"), *_experiments_in(root, "*/*")])


def _experiments_in(root: Path, depth: str) -> list[Experiment]:
    """The experiments so far below a folder; one that has lost its experiment.json is known by its first trial."""
    marks = [*root.glob(f"{depth}/{EXPERIMENT_FILE}"), *root.glob(f"{depth}/{trial_path(Path(), 0).name}")]
    # What begins with a dot is a copy that is not whole yet, or one that was set aside.
    folders = [mark.parent for mark in marks if not mark.parent.name.startswith(".")]
    return [Experiment(path) for path in dict.fromkeys(folders)]


def find_sessions(path: Path) -> list[Run]:
    """Every session in an experiment, trial or session directory."""
    path = Path(path)
    if (path / RUN_FILE).exists() or is_session_path(path):
        return [read_session(path)[0]]
    if (path / EXPERIMENT_FILE).is_file() or trial_paths(path):
        runs = [run for trial in Experiment(path).trials() for run in trial.sessions()]
        if not runs:
            raise RunError(
                "this experiment holds no session: their directories (trial_000/session_0, ...) are missing",
                place=shown(path),
                remedy=f"restore them from a copy, or start anew: operant train {shown(path / RESOLVED_FILE)}",
            )
        return runs
    runs = Trial(path).sessions()
    if not runs:
        raise no_run(path, f"it has neither {RUN_FILE}, nor {EXPERIMENT_FILE}, nor sessions")
    return runs


def read_session(path: Path) -> tuple[Run, dict[str, Any]]:
    """The run in a directory that is certainly a session's, and the content of its run.json."""
    try:
        document = read_document(path, RUN_FILE)
        return Run.of(path, document), document
    except OperantError:
        if (path / RUN_FILE).exists() or not path.is_dir():
            raise
    others = f"{shown(path.parent)}/session_N"
    raise RunError(
        f"{RUN_FILE} is missing, without which nothing of this session can be resumed or shown",
        place=shown(path),
        remedy=f"restore it from a copy, move the directory away, or name another session: {others}",
    )


def resolve(text: str, root: Path | str = "runs") -> Path:
    """The directory that is named: a path, `name`, `name/stamp`, or `latest`.

    A name means its newest experiment. `UsageError` with the nearest names if there is none such.
    """
    if text == LATEST:
        known = list_experiments(Path(root))
        if not known:
            raise _unknown(text, Path(root))
        return known[-1].path
    for path in (Path(text), Path(root) / text):
        if _is_run_folder(path):
            return path
        inside = _newest_last(_experiments_in(path, "*"))
        if inside:
            return inside[-1].path
    raise _unknown(text, Path(root))


def _is_run_folder(path: Path) -> bool:
    if (path / RUN_FILE).exists() or (path / EXPERIMENT_FILE).exists() or is_session_path(path):
        return True
    return bool(trial_paths(path) or session_paths(path))


def _newest_last(experiments: Iterable[Experiment]) -> list[Experiment]:
    """By the moment of creation, which the stamp gives where it cannot be read; then by stamp."""
    return sorted(experiments, key=lambda each: (_created(each), _stamp_order(each.path.name)))


def _created(experiment: Experiment) -> str:
    try:
        return str(experiment.document.get("created", ""))
    except OperantError:
        stamp = _stamp_order(experiment.path.name)[0]
        return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[9:11]}:{stamp[11:13]}:{stamp[13:]}"


def _stamp_order(name: str) -> tuple[str, int]:
    """Orders 20260101-120000 before its ties -2, -3, ... -10."""
    found = _STAMP.fullmatch(name)
    return (found[1], int(found[2] or 1)) if found else (name, 1)


def _unknown(text: str, root: Path) -> UsageError:
    known = list_experiments(root)
    if not known:
        return UsageError(
            f"there is no run {text!r}, nor any other under {shown(root)}",
            remedy="start one: `operant train ppo_cartpole`",
        )
    full = [experiment.path.relative_to(root).as_posix() for experiment in known]
    names = sorted({name.split("/")[0] for name in full})
    near = difflib.get_close_matches(text, names + full, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names[:5])}"
    return UsageError(
        f"there is no run {text!r} under {shown(root)}; {hint}",
        remedy="`operant runs` lists them all",
    )


def _create_first_free(folder: Path, name: str, files: dict[str, str], number: int = 1) -> Path:
    """Make the folder `name`, or `name-2`, `name-3`, ... where another process was first."""
    path = folder / (name if number == 1 else f"{name}-{number}")
    try:
        create_documents(path, files)
    except UsedDirectory:
        return _create_first_free(folder, name, files, number + 1)
    return path
