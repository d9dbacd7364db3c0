"""The trials of a search: what each tried, how far it came, what it scored. Read from its run directories alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from operant.errors import RunError, UsageError
from operant.report.formatting import columns, compact
from operant.report.read import EVAL_SCORE, FINAL_SCORE
from operant.report.stats import Estimate, mean_interval
from operant.report.summary import overall_state
from operant.report.tail import last_rows
from operant.run.layout import METRICS_FILE, SEARCH_FILE, checkpoint_paths, shown, trial_paths
from operant.run.run import Run, find_sessions

LONGEST_VALUE = 14


@dataclass(frozen=True)
class TrialRow:
    """One trial. `rung` counts the rungs that it has reached; `state` is done, paused, replaced, running, failed, new.

    `frames` are those of all its sessions; `score` is None before the first evaluation. A fork has a `parent`, from
    which each session went on at the frame `forked_at`, and in a search the trial that it `replaces`.
    """

    trial: int
    path: Path
    settings: dict[str, Any]
    score: Estimate | None
    is_final: bool
    rung: int
    frames: int
    state: str
    sessions: int = 1
    parent: int | None = None
    forked_at: int = 0
    replaces: int | None = None

    @property
    def own_frames(self) -> int:
        """The frames that were trained in this trial, without those of its ancestors."""
        return self.frames - self.forked_at * self.sessions

    def as_dict(self) -> dict[str, Any]:
        """The row for `--json`."""
        return {
            **self.__dict__,
            "path": shown(self.path),
            "score": None if self.score is None else self.score.as_dict(),
        }


def read_search(path: Path) -> dict[str, Any] | None:
    """What a search wrote about itself; None where the folder holds none."""
    try:
        return json.loads((Path(path) / SEARCH_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as fault:
        raise RunError(f"{SEARCH_FILE} cannot be read: {fault}", place=shown(path)) from None


def search_rows(path: Path) -> list[TrialRow]:
    """Every trial of the search in that folder, in order."""
    document = read_search(path) or {"settings": [], "rungs": []}
    rows = [_row(trial, document) for trial in trial_paths(path) if any(trial.glob("session_*/run.json"))]
    ended = {row.replaces for row in rows}
    return [replace(row, state="replaced") if row.trial in ended and row.state == "paused" else row for row in rows]


def ranked(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """Best first: trials that came further before others, then by score, then the earlier one."""
    return sorted(
        (row for row in rows if row.score is not None),
        key=lambda row: (-row.rung, -(row.score.point if row.score else 0.0), row.trial),
    )


def best_trial(path: Path) -> TrialRow:
    """The best trial of a search; `UsageError` while none was evaluated."""
    found = ranked(search_rows(path))
    if not found:
        raise UsageError(
            "no trial of this search was evaluated yet", place=shown(path), remedy=f"operant search {shown(path)}"
        )
    return found[0]


def render_search(rows: Sequence[TrialRow], rungs: Sequence[int], limit: int | None = None) -> list[str]:
    """The table as plain text, best first and trials without a score last; at most `limit` of them."""
    order = [*ranked(rows), *(row for row in rows if row.score is None)]
    names = short_names(list(rows[0].settings)) if rows else {}
    has_forks = any(row.parent is not None for row in rows)
    head = ["trial", *names.values(), "score", "rung", "frames", "state", *(["fork of"] if has_forks else [])]
    cells = [
        [
            str(row.trial),
            *settings_cells(row),
            "-" if row.score is None else row.score.text() if row.score.n > 1 else row.score.text().split(" ")[0],
            f"{row.rung}/{len(rungs)}",
            compact(row.frames),
            row.state,
            *([_origin(row)] if has_forks else []),
        ]
        for row in order[:limit]
    ]
    left = len(order) - len(cells)
    more = [f"... and {left} more trials"] if left else []
    right = {0, len(names) + 1, len(names) + 2, len(names) + 3}
    return [*columns([head, *cells], right=right), *more] if cells else ["no trial yet"]


def settings_text(settings: Mapping[str, Any]) -> str:
    """`gamma 0.98, lr 0.00123`"""
    names = short_names(list(settings))
    return ", ".join(f"{names[path]} {_value(value)}" for path, value in settings.items())


def settings_cells(row: TrialRow) -> list[str]:
    """The settings of a trial for a table, in the order of its columns."""
    return [_value(value) for value in row.settings.values()]


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path, or as many as tell it from the others."""
    names = {}
    for path in paths:
        parts = path.split(".")
        short = (".".join(parts[-count:]) for count in range(1, len(parts) + 1))
        others = [each for each in paths if each != path]
        names[path] = next(
            (name for name in short if not any(f".{each}".endswith(f".{name}") for each in others)), path
        )
    return names


def _origin(row: TrialRow) -> str:
    """`3 at 8,192`"""
    return "" if row.parent is None else f"{row.parent} at {row.forked_at:,}"


def _row(trial: Path, document: Mapping[str, Any]) -> TrialRow:
    runs = find_sessions(trial)
    standings = [_standing(run) for run in runs]
    state = overall_state([run.state for run in runs])
    is_final = all(final is not None for _, final, _ in standings)
    scores = [final if is_final else last for _, final, last in standings]
    known = [score for score in scores if score is not None]
    frames = [frames for frames, _, _ in standings]
    reached = sum(all(f >= rung for f in frames) for rung in document["rungs"])
    return TrialRow(
        trial=int(trial.name.rpartition("_")[2]),
        path=trial,
        settings={path: _at(runs[0].spec, path) for path in document["settings"]},
        score=mean_interval(known) if known and len(known) == len(runs) else None,
        is_final=is_final,
        rung=reached,
        frames=sum(frames),
        state="paused" if state == "stopped" else state,
        sessions=len(runs),
        **_ancestry(runs[0]),
    )


def inherited_frames(run: Run) -> int:
    """The frames that a session has from another trial of the same search, which trained them; 0 where from none."""
    return int(run.parent["frames"]) if run.parent is not None and "replaces" in run.parent else 0


def _ancestry(run: Run) -> dict[str, int]:
    """From which trial of the same search a session was forked, if it was."""
    if run.parent is None or "replaces" not in run.parent:
        return {}
    parent = int(Path(run.parent["run"]).parent.name.rpartition("_")[2])
    return {"parent": parent, "forked_at": inherited_frames(run), "replaces": run.parent["replaces"]}


def _standing(run: Run) -> tuple[int, float | None, float | None]:
    """Frames, final score and last evaluation of a session."""
    newest: dict[str, Any] = {}
    for row in last_rows(run.path / METRICS_FILE):
        newest.update({key: value for key, value in row.items() if value is not None})
    # Between two rows a trial may have paused at a checkpoint that is newer than both.
    saved = checkpoint_paths(run.checkpoints)
    frames = max(int(newest.get("frames", 0)), int(saved[-1].name) if saved else 0)
    return frames, newest.get(FINAL_SCORE), newest.get(EVAL_SCORE)


def _at(spec: Any, path: str) -> Any:
    for part in path.split("."):
        spec = spec.get(part) if isinstance(spec, Mapping) else None
    return spec


def _value(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
