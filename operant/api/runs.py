"""Runs on disk as objects: an experiment holds trials, a trial the sessions (seeds) of one setting."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from operant.api.columns import Columns
from operant.api.policy import Policy, load_policy
from operant.errors import RunError, RunWarning, UsageError
from operant.report.episodes import Catalogue
from operant.report.read import SessionRecord, read_session
from operant.report.search_table import best_trial
from operant.report.stats import Estimate
from operant.report.summary import TrialSummary, overall_state, summarise
from operant.run import layout
from operant.run.checkpoint import Checkpoint, best, list_checkpoints, newest_good, verify
from operant.run.episode import Episode
from operant.run.layout import shown
from operant.run.run import Run, find_sessions, list_experiments, resolve
from operant.spec.schema import Spec
from operant.spec.stored import stored
from operant.store.snapshot import experiment_of

LATEST, BEST = "latest", "best"


@dataclass(frozen=True)
class Session:
    """One seed of a trial. What can change (state, rows, checkpoints) is read from disk at each use."""

    path: Path

    @property
    def run(self) -> Run:
        """The run directory itself."""
        return Run.open(self.path)

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.run.name

    @property
    def seed(self) -> int:
        """The seed of this session."""
        return self.run.seed

    @property
    def state(self) -> str:
        """new, running, stopped, failed or done."""
        return self.run.state

    @property
    def spec(self) -> Spec:
        """The spec that it runs, with every default."""
        return stored(self.run.spec)

    @property
    def frames(self) -> int:
        """Frames of the newest row."""
        return self.record().frames

    @property
    def score(self) -> Estimate | None:
        """The mean return of the final evaluation, or of the last one; None before the first."""
        return summarise(self.path).score

    def record(self) -> SessionRecord:
        """Rows, evaluations, reference scores and provenance as they stand now."""
        return read_session(self.path)

    def metrics(self, *names: str) -> Columns:
        """Rows as columns: `frames`, and the named metrics in the rows that have one; without names all of them."""
        return Columns.of_rows(self.record().rows, names, place=shown(self.path))

    def episodes(self, split: str | None = None) -> Iterator[Episode]:
        """The stored episodes, of one split ("train", "eval", "final") or all."""
        catalogue = Catalogue.open(self.path / layout.EPISODES_FILE)
        return (catalogue.read(entry) for entry in catalogue.entries if split in (None, entry.split))

    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints with a readable manifest, newest last."""
        return list_checkpoints(self.run.checkpoints)

    def checkpoint(self, which: str | int = LATEST) -> Checkpoint:
        """`latest`, `best` (the newest while none has a score) or that of so many frames, every byte verified."""
        return choose_checkpoint(self.run, str(which))

    def policy(self, checkpoint: str | int = LATEST, device: str = "cpu") -> Policy:
        """What a checkpoint plays by: `policy.act(obs)` on numpy."""
        return load_policy(self.run, self.checkpoint(checkpoint), device)


@dataclass(frozen=True)
class Trial:
    """One setting over its seeds."""

    path: Path

    @property
    def sessions(self) -> list[Session]:
        """The sessions in order."""
        return [Session(run.path) for run in find_sessions(self.path)]

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.sessions[0].name

    @property
    def spec(self) -> Spec:
        """The spec that all sessions run, with every default."""
        return self.sessions[0].spec

    @property
    def state(self) -> str:
        """One word for all sessions: done only if all are."""
        return overall_state([session.state for session in self.sessions])

    @property
    def score(self) -> Estimate | None:
        """The mean over seeds with its 95 % interval; None before the first evaluation."""
        return self.summary().score

    def summary(self) -> TrialSummary:
        """Score, every seed, SLM-Lab's metrics, provenance and caveats."""
        return summarise(self.path)

    def metrics(self, *names: str) -> Columns:
        """As a session's, the seeds below each other, distinguished by the column `seed`."""
        parts = [(session.seed, session.metrics(*names)) for session in self.sessions]
        return Columns.below_each_other("seed", parts)

    def episodes(self, split: str | None = None) -> Iterator[Episode]:
        """The stored episodes of all sessions, one session after the other."""
        return (episode for session in self.sessions for episode in session.episodes(split))

    def checkpoints(self) -> list[Checkpoint]:
        """Those of all sessions."""
        return [saved for session in self.sessions for saved in session.checkpoints()]

    def policy(self, checkpoint: str | int = BEST, device: str = "cpu") -> Policy:
        """The policy of the session with the best evaluation, by default with its best checkpoint."""
        return max(self.sessions, key=lambda session: best_score(session.run)).policy(checkpoint, device)


@dataclass(frozen=True)
class Experiment:
    """A folder of several trials."""

    path: Path

    @property
    def trials(self) -> list[Trial]:
        """The trials in order."""
        return [Trial(path) for path in layout.trial_paths(self.path)]


def open(run: str | Path, root: str | Path = "runs") -> Trial | Session | Experiment:
    """The run that a path or name stands for (`ppo_cartpole`, `ppo_cartpole/20260101-120000`, `latest`, a directory).

    A session's directory opens as `Session`, an experiment of several trials as `Experiment`, all else as `Trial`.
    """
    place = resolve(str(run), Path(root)).resolve()
    find_sessions(place)
    if (place / layout.RUN_FILE).exists():
        return Session(place)
    trials = layout.trial_paths(place)
    if not trials:
        return Trial(place)
    return Trial(trials[0]) if len(trials) == 1 else Experiment(place)


def open_trial(run: str | Path | Session | Trial | Experiment, root: str | Path = "runs") -> Trial:
    """As `open`, where one trial is meant: a session counts as a trial of its own, and of a search the best one."""
    opened = open(run, root) if isinstance(run, str | Path) else run
    if isinstance(opened, Session):
        return Trial(opened.path)
    if isinstance(opened, Experiment) and (opened.path / layout.SEARCH_FILE).is_file():
        return Trial(best_trial(opened.path).path)
    if isinstance(opened, Experiment):
        trials = opened.trials
        raise UsageError(
            f"this experiment has {len(trials)} trials: {trials[0].path.name} to {trials[-1].path.name}",
            place=shown(opened.path),
            remedy=f"name one, for example {shown(trials[0].path)}",
        )
    return opened


AnyRun = str | Path | Trial | Session | Experiment


def find_experiment(run: AnyRun, root: str | Path = "runs") -> Path:
    """The folder of the experiment that a run is, or is a part of."""
    return experiment_of(resolve(str(run), Path(root)) if isinstance(run, str | Path) else run.path)


def list_runs(root: str | Path = "runs") -> list[Trial | Experiment]:
    """The runs under a folder, newest first."""
    found: list[Trial | Experiment] = []
    for experiment in reversed(list_experiments(Path(root))):
        trials = layout.trial_paths(experiment.path)
        if trials:
            found.append(Trial(trials[0]) if len(trials) == 1 else Experiment(experiment.path))
    return found


def best_score(run: Run) -> float:
    """The best evaluation of a session, so that sessions can be ordered."""
    top = best(run.checkpoints)
    return float("-inf") if top is None or top.score is None else top.score


def choose_checkpoint(run: Run, which: str) -> Checkpoint:
    """The checkpoint that is named, every byte of it verified; `best` is the newest while none has a score."""
    top = best(run.checkpoints) if which == BEST else None
    if top is not None:
        return verify(top.path)
    if which in (BEST, LATEST):
        return _newest(run)
    saved = list_checkpoints(run.checkpoints)
    found = next((each for each in saved if str(each.at.frames) == which), None)
    if found is None:
        there = ", ".join(str(each.at.frames) for each in saved) or "none"
        raise UsageError(
            f"there is no checkpoint at {which!r}; frames with one: {there}",
            place=shown(run.path),
            remedy=f"--checkpoint {LATEST}, --checkpoint {BEST}, or one of these numbers",
        )
    return verify(found.path)


def _newest(run: Run) -> Checkpoint:
    good, problems = newest_good(run.checkpoints)
    place = shown(run.path)
    if good is None and problems:
        raise RunError(
            f"no checkpoint of this session is good; the newest: {problems[0]}",
            place=place,
            remedy=f"operant resume {place}    (trains it again from frame 0)",
        )
    if good is None:
        cause = f"this session has no checkpoint yet (its state is {run.state})"
        raise RunError(cause, place=place, remedy=f"operant resume {place}")
    if problems:
        warnings.warn(f"{problems[0]}; using {shown(good.path)} instead", RunWarning, stacklevel=2)
    return good
