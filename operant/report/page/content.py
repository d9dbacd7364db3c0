"""What a report page shows, gathered from the files of a run; media come from whoever can render them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import OperantError
from operant.report.episodes import Catalogue, Entry
from operant.report.filters import Filter, select
from operant.report.origin import Origin, trial_origin
from operant.report.plots import Line, trial_line
from operant.report.read import TrialRecord, read_trial
from operant.report.summary import TrialSummary, summarise_record
from operant.run.episode import Episode
from operant.run.inventory import faults
from operant.run.layout import EVENTS_FILE, SPEC_STEM, shown, trial_paths
from operant.run.metrics import read_rows
from operant.run.run import Experiment
from operant.run.tags import Tags, read_tags

FIRST = ("train/return", "eval/score")
COUNTERS = ("frames", "updates", "episodes", "tokens", "seconds")
LEFT_OUT = ("perf/", "final/", "eval/")
MOST_CHARTS = 18
MOST_TRIALS = 8
KEY_PACKAGES = ("torch", "jax", "gymnasium", "numpy", "transformers")
SPLITS = ("final", "eval", "train")


@dataclass(frozen=True)
class Media:
    """A video as a data URL, or a replay as a whole page of HTML; `note` says why there is neither."""

    caption: str = ""
    video: str | None = None
    kind: str = ""
    replay: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Transcript:
    """An episode in words, and why it is shown: best, worst or last."""

    why: str
    name: str
    episode: Episode


@dataclass(frozen=True)
class Alert:
    """Something that the run told of itself, or that is wrong with its files."""

    kind: str
    message: str
    session: str = ""
    time: str = ""


@dataclass(frozen=True)
class TrialLine:
    """A trial of an experiment of several, for the table and the common figure."""

    name: str
    summary: TrialSummary
    line: Line
    settings: str


@dataclass(frozen=True)
class Content:
    """All that is on the page."""

    path: Path
    summary: TrialSummary
    record: TrialRecord
    origin: Origin
    tags: Tags
    spec_text: str
    command: str
    charts: tuple[tuple[str, Line], ...]
    trials: tuple[TrialLine, ...]
    alerts: tuple[Alert, ...]
    transcripts: tuple[Transcript, ...]
    media: Media


def gather(experiment: Path, trial: Path, media: Media, settings: dict[str, str], resume: str | None = None) -> Content:
    """The content of a page about a trial, and about the other trials of its experiment where there are any.

    `settings` says of trials what distinguishes them; `resume` is the kind that the algorithm declares.
    """
    record = read_trial(trial)
    return Content(
        path=experiment,
        summary=summarise_record(record, resume),
        record=record,
        origin=trial_origin(trial),
        tags=read_tags(experiment),
        spec_text=_spec_text(experiment),
        command=_command(experiment),
        charts=tuple((metric, trial_line(record.name, record, metric, "frames")) for metric in _metrics(record)),
        trials=_trials(experiment, settings),
        alerts=tuple(_alerts(experiment, record)),
        transcripts=tuple(_transcripts(trial)),
        media=media,
    )


def _metrics(record: TrialRecord) -> list[str]:
    """What is drawn: the return and the score first, then losses and whatever else is not 0 throughout."""
    names = dict.fromkeys(name for session in record.sessions for name in session.metrics())
    others = [name for name in names if "/" in name and name not in FIRST and not name.startswith(LEFT_OUT)]
    known = [name for name in FIRST if any(len(curve.x) for curve in record.curves(name))]
    telling = [name for name in sorted(others) if any(curve.y.any() for curve in record.curves(name))]
    return [*known, *telling][:MOST_CHARTS]


def _trials(experiment: Path, settings: dict[str, str]) -> tuple[TrialLine, ...]:
    """The trials of an experiment of several, best first."""
    paths = trial_paths(experiment)
    if len(paths) < 2:
        return ()
    records = [read_trial(path) for path in paths]
    found = [
        TrialLine(
            record.path.name,
            summarise_record(record),
            trial_line(record.path.name, record, FIRST[0], "frames"),
            settings.get(record.path.name, ""),
        )
        for record in records
    ]
    return tuple(sorted(found, key=lambda each: -each.summary.score.point if each.summary.score else float("inf")))


def _alerts(experiment: Path, record: TrialRecord) -> list[Alert]:
    events = [
        Alert(str(row.get("kind", "")), str(row.get("message", "")), session.path.name, str(row.get("time", ""))[:19])
        for session in record.sessions
        for row in read_rows(session.path / EVENTS_FILE)
    ]
    failed = [Alert("failed", each.error, each.path.name) for each in record.sessions if each.error]
    known = {(each.kind, each.session) for each in events}
    broken = [Alert("file", str(fault)) for fault in faults(experiment)]
    return [*broken, *(each for each in failed if (each.kind, each.session) not in known), *events]


def _transcripts(trial: Path) -> list[Transcript]:
    """The best, the worst and the last episode of the most telling split that has words."""
    catalogue = Catalogue.open(trial)
    for split in SPLITS:
        entries = [entry for entry in select(catalogue, Filter(split=split)) if entry.turns]
        if entries:
            return [Transcript(why, catalogue.name_of(e), catalogue.read(e)) for why, e in _chosen(entries)]
    return []


def _chosen(entries: Sequence[Entry]) -> list[tuple[str, Entry]]:
    scored = sorted((entry for entry in entries if entry.score is not None), key=_score)
    found = [("best", scored[-1]), ("worst", scored[0])] if scored else []
    chosen: dict[str, tuple[str, Entry]] = {}
    for why, entry in [*found, ("last", entries[0])]:
        chosen.setdefault(entry.full_name, (why, entry))
    return list(chosen.values())


def _score(entry: Entry) -> float:
    return entry.score if entry.score is not None else float("-inf")


def _spec_text(experiment: Path) -> str:
    """The spec as it was written; empty where that is gone."""
    files = sorted(experiment.glob(f"{SPEC_STEM}.*"))
    try:
        return files[0].read_text(encoding="utf-8", errors="replace") if files else ""
    except OSError:
        return ""


def _command(experiment: Path) -> str:
    """What the user typed; empty where the experiment no longer says."""
    try:
        return shlex.join(map(str, Experiment(experiment).document.get("command") or ()))
    except OperantError:
        return ""


def facts_of(content: Content) -> list[tuple[str, str]]:
    """Where the run came from, as pairs of a name and a text."""
    provenance: dict[str, Any] = dict(content.origin.provenance)
    hardware, python = provenance.get("hardware") or {}, provenance.get("python") or {}
    packages = provenance.get("packages") or {}
    key = [f"{name} {packages[name]}" for name in KEY_PACKAGES if name in packages]
    memory = hardware.get("memory_bytes")
    gpus = [str(gpu.get("name")) for gpu in hardware.get("gpus") or ()]
    found = [
        ("run", shown(content.path)),
        ("begun", str(provenance.get("time", ""))[:19].replace("T", " ")),
        ("command", content.command),
        ("seeds", ", ".join(map(str, content.origin.seeds))),
        *((f"commit ({each.get('of')})", _commit(each)) for each in provenance.get("git") or ()),
        ("Python", str(python.get("version", ""))),
        ("packages", ", ".join(key)),
        ("processor", f"{hardware.get('cpu')}, {hardware.get('cores')} cores" if hardware else ""),
        ("memory", f"{memory / 2**30:.0f} GiB" if isinstance(memory, int) else ""),
        ("accelerators", ", ".join(gpus)),
        ("system", str(hardware.get("system", ""))),
        ("threads", str(content.origin.threads or "")),
    ]
    return [(name, text) for name, text in found if text]


def _commit(repository: dict[str, Any]) -> str:
    state = " with uncommitted changes" if repository.get("dirty") else " (clean)"
    return f"{repository.get('sha') or 'none'}{state}"
