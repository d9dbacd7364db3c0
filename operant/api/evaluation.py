"""Scoring policies, and comparing runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from operant.api.policy import engine_of_run
from operant.api.runs import LATEST, Experiment, Session, Trial, open, open_trial
from operant.errors import UsageError
from operant.report.compare import Verdict
from operant.report.compare import compare as compare_trials
from operant.report.episode_metrics import over_episodes
from operant.report.stats import Estimate, mean_interval
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode, counted_scores
from operant.run.layout import EVALUATIONS_FILE, shown
from operant.run.metrics import JsonLines
from operant.run.run import Run

TRANSFER = "transfer"
"""The split of episodes in another environment, which are no evaluation of the run itself."""


@dataclass(frozen=True)
class SessionScore:
    """One session's policy on fixed seeds; `score` counts answers without one as 0, `errors` says how many.

    `env` is the other environment that it played in; None for the one that it was trained in.
    """

    session: Session
    checkpoint: Checkpoint
    first_seed: int
    episodes: tuple[Episode, ...]
    env: str | None = None

    @property
    def returns(self) -> list[float]:
        """The score of each episode."""
        return counted_scores(episode.score for episode in self.episodes)

    @property
    def score(self) -> float | None:
        """The mean over episodes; None if none has a score."""
        return sum(self.returns) / len(self.returns) if self.returns else None

    @property
    def errors(self) -> int:
        """Episodes without a score of their own."""
        return sum(episode.score is None for episode in self.episodes)

    def as_dict(self) -> dict[str, Any]:
        """The row of `operant eval --json`."""
        return {
            "session": shown(self.session.path),
            "env": self.env,
            "frames": self.checkpoint.at.frames,
            "score": self.score,
            "low": min(self.returns, default=None),
            "high": max(self.returns, default=None),
            "episodes": len(self.returns),
            "errors": self.errors,
            "parts": {name: each.as_dict() for name, each in over_episodes(e.parts for e in self.episodes).items()},
            "first_seed": self.first_seed,
        }


@dataclass(frozen=True)
class Evaluation:
    """The policies of all sessions on the same seeds."""

    sessions: tuple[SessionScore, ...]

    @property
    def score(self) -> Estimate | None:
        """The mean over sessions with its 95 % interval; None if no episode has a score."""
        scores = [each.score for each in self.sessions if each.score is not None]
        return mean_interval(scores) if scores else None


def evaluate(
    run: str | Path | Trial | Session,
    /,
    *,
    episodes: int | None = None,
    seed: int | None = None,
    checkpoint: str | int = LATEST,
    deterministic: bool = True,
    env: str | None = None,
    root: str | Path = "runs",
) -> Evaluation:
    """Play every session's policy on fixed seeds (`meta.final_episodes` from `meta.eval_seed` on by default).

    The episodes are appended to eval.jsonl in each session's directory. A seed that was trained on is refused.

    `env` names another environment to play in, with the same observations and actions: Gymnasium's form of it, as its
    name alone makes it, and with its own rewards. Those episodes have the split "transfer".
    """
    return Evaluation(tuple(evaluate_sessions(run, episodes, seed, checkpoint, deterministic, root, env)))


def evaluate_sessions(
    run: str | Path | Trial | Session,
    episodes: int | None,
    seed: int | None,
    checkpoint: str | int,
    deterministic: bool,
    root: str | Path = "runs",
    env: str | None = None,
) -> Iterator[SessionScore]:
    """As `evaluate`, each session as it is played; all that can be refused is refused before the first plays."""
    opened = open(run, root) if isinstance(run, str | Path) else run
    trials = opened.trials if isinstance(opened, Experiment) else [opened]
    sessions = [each for trial in trials for each in ([trial] if isinstance(trial, Session) else trial.sessions)]
    chosen = [(session, playing_in(session.run, env), session.checkpoint(checkpoint)) for session in sessions]
    for session, playing, saved in chosen:
        first, played = _played(playing, saved, episodes, seed, deterministic)
        if env is not None:
            played = tuple(replace(episode, split=TRANSFER) for episode in played)
        _append(session.path / EVALUATIONS_FILE, played)
        yield SessionScore(session, saved, first, played, env)


def playing_in(run: Run, env: str | None) -> Run:
    """The run for an engine to play its checkpoints, in another environment if that is named."""
    if env is None:
        return run
    from operant.api.other_env import in_environment

    return in_environment(run, env)


def _played(
    run: Run, saved: Checkpoint, episodes: int | None, seed: int | None, deterministic: bool
) -> tuple[int, tuple[Episode, ...]]:
    """The first seed, and an episode for each seed from there on."""
    meta = run.spec["meta"]
    count = episodes or meta["final_episodes"]
    first = meta["eval_seed"] if seed is None else seed
    _refuse_large_seeds(first, count)
    return first, tuple(engine_of_run(run).evaluate(run, saved, count, first, deterministic))


def _append(file: Path, episodes: tuple[Episode, ...]) -> None:
    log = JsonLines(file)
    for episode in episodes:
        log.append(episode.as_dict())
    log.sync()
    log.close()


def compare(
    *runs: str | Path | Trial | Session | Experiment,
    by: str | None = None,
    difference: float | None = None,
    price_per_hour: float | None = None,
    root: str | Path = "runs",
) -> Verdict:
    """Runs by their seeds' scores, every pair of them; a winner is named only where the seeds allow it.

    With `by`, a setting such as `agent.algorithm.name`, runs with the same value of it are one side, and all trials
    of an experiment count; else of a search its best trial. `difference` is the one that the needed seeds are counted
    for, by default the one found. `price_per_hour` is of a machine, for runs whose spec has none.
    """
    opened = [open(run, root) if isinstance(run, str | Path) else run for run in runs]
    if by is None:
        paths = [open_trial(each).path for each in opened]
    else:
        paths = [trial.path for each in opened for trial in (each.trials if isinstance(each, Experiment) else [each])]
    return compare_trials(paths, by, difference, price_per_hour)


def _refuse_large_seeds(first: int, count: int) -> None:
    from operant.spec.settings.sections import MAX_SEED

    if first + count - 1 > MAX_SEED:
        raise UsageError(
            f"{count} episodes from seed {first} would end at seed {first + count - 1}, above {MAX_SEED}",
            remedy=f"a seed of {MAX_SEED - count + 1} or less",
        )
