"""Which seeds make a line of a chart: those of a run, of a trial, or of all runs that share a setting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.app.entry import Entry
from operant.app.index import Index
from operant.report.read import EVAL_SCORE, FINAL_SCORE, TRAIN_RETURN
from operant.report.search_table import short_names
from operant.report.tail import newest_values
from operant.run.layout import METRICS_FILE, RESOLVED_FILE, RUN_FILE, session_paths, trial_paths

RUN, TRIAL, SPEC, ALGORITHM, ENV = "run", "trial", "spec", "algorithm", "env"
GROUPS = (RUN, TRIAL, SPEC, ALGORITHM, ENV)
UNTOLD = ("name", "description", "meta.")
ABSENT = "-"
RECENT_SECONDS = 1.0
AXES = ("frames", "seconds", "tokens", "updates", "episodes")


@dataclass
class Line:
    """A line of a chart: the metric files of its seeds. `key` identifies it within the chart."""

    key: str
    label: str
    runs: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    tokens: int = 0


def lines_of(index: Index, runs: Sequence[str], group: str = RUN) -> list[Line]:
    """The lines of some runs. Of a search it is the best trial that stands for it, unless all trials are asked for."""
    found: dict[str, Line] = {}
    for run in runs:
        entry, path = index.entry_of(run), index.path_of(run)
        for trial in _trials(path, every=group == TRIAL):
            key, label = _group_of(entry, trial, group)
            line = found.setdefault(key, Line(key, label))
            line.runs += [run] if run not in line.runs else []
            line.tokens += entry.tokens
            line.files += [session / METRICS_FILE for session in session_paths(trial) or [trial]]
    return _with_short_labels(list(found.values()), group)


class RecentLines:
    """`lines_of`, asked once where all charts of a page ask for the same at once (final). Threads take turns."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._turn = threading.Lock()
        self._asked: tuple[list[str], str] | None = None
        self._found: list[Line] = []
        self._until = 0.0

    def of(self, runs: list[str], group: str) -> list[Line]:
        """The lines as they are, or were within the last `RECENT_SECONDS`; the rows of their files are never older."""
        with self._turn:
            if self._asked != (runs, group) or time.monotonic() > self._until:
                self._found = lines_of(self._index, runs, group)
                self._asked, self._until = (runs, group), time.monotonic() + RECENT_SECONDS
            return self._found


def differing_settings(index: Index, runs: Sequence[str]) -> dict[str, dict[str, str]]:
    """The settings in which some runs differ, with the value of each; by their full names."""
    specs = {run: flat(spec_of(index.path_of(run))) for run in runs}
    paths = list(dict.fromkeys(path for spec in specs.values() for path in spec))
    found = {path: {run: spec.get(path, ABSENT) for run, spec in specs.items()} for path in paths}
    return {
        path: values for path, values in found.items() if len(set(values.values())) > 1 and not path.startswith(UNTOLD)
    }


def flat(spec: Mapping[str, Any], at: str = "") -> dict[str, str]:
    """A spec as dotted names with their values as text."""
    found: dict[str, str] = {}
    for key, value in spec.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{at}{key}.")
        else:
            found[f"{at}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return found


def spec_of(path: Path) -> dict[str, Any]:
    """The resolved spec of an experiment, a trial or a session; empty where it cannot be read."""
    files = [path / RUN_FILE, *(session / RUN_FILE for session in session_paths(path)[:1]), path / RESOLVED_FILE]
    for file in files:
        try:
            document = json.loads(file.read_bytes())
            return document["spec"] if file.name == RUN_FILE else document
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def lead_trial(path: Path) -> Path | None:
    """The trial that stands for an experiment: the one with the highest score, else the first."""
    trials = trial_paths(path)
    if not trials:
        return path
    if len(trials) == 1:
        return trials[0]

    def worth(trial: Path) -> tuple[float, float]:
        rows = [newest_values(session / METRICS_FILE, (FINAL_SCORE, EVAL_SCORE)) for session in session_paths(trial)]
        for place, key in enumerate((FINAL_SCORE, EVAL_SCORE)):
            known = [row[key] for row in rows if key in row]
            if known:
                return -place, sum(known) / len(known)
        return float("-inf"), 0.0

    return max(trials, key=worth)


def _trials(path: Path, every: bool) -> list[Path]:
    lead = lead_trial(path)
    return trial_paths(path) or [path] if every else [lead] if lead else []


def _group_of(entry: Entry, trial: Path, group: str) -> tuple[str, str]:
    """The key and the label of the line that a trial belongs to."""
    if group == TRIAL:
        return f"{entry.id}/{trial.name}", f"{entry.name} {trial.name}"
    if group in (SPEC, ALGORITHM, ENV):
        value = {SPEC: entry.name, ALGORITHM: entry.algorithm, ENV: entry.env}[group] or ABSENT
        return f"{group}={value}", value
    if group != RUN:
        value = flat(spec_of(trial)).get(group, ABSENT)
        return f"{group}={value}", f"{group.rpartition('.')[2]} {value}"
    return entry.id, entry.name


def _with_short_labels(lines: list[Line], group: str) -> list[Line]:
    """Labels with the stamp of their run where the name alone would not tell them apart."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.label] = counts.get(line.label, 0) + 1
    for line in lines:
        if group == RUN and counts[line.label] > 1:
            line.label = line.key
    return lines


def setting_names(paths: Sequence[str]) -> dict[str, str]:
    """Short names of settings, as tables show them."""
    return short_names(list(paths))


def metric_names(files: Sequence[Path]) -> list[str]:
    """The metrics that the first and the last rows of some files have; whole files are not read for it."""
    found: dict[str, None] = {}
    for file in files:
        for line in _ends(file):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                found |= dict.fromkeys(key for key, value in row.items() if "/" in key and _is_number(value))
    order = (TRAIN_RETURN, EVAL_SCORE)
    return sorted(found, key=lambda key: (order.index(key) if key in order else len(order), key))


def _ends(file: Path, size: int = 8192) -> list[bytes]:
    try:
        with file.open("rb") as opened:
            first = opened.read(size).split(b"\n")[:-1]
            opened.seek(max(0, file.stat().st_size - size))
            return [*first, *opened.read().split(b"\n")[1:]]
    except OSError:
        return []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
