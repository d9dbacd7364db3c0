"""The promises of a run, each a function that raises `Broken` where it is not kept and else returns what was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from operant.contract.processes import finish, kill
from operant.engines import engine_of
from operant.run.checkpoint import list_checkpoints
from operant.run.layout import EPISODES_FILE, EVENTS_FILE, METRICS_FILE
from operant.run.metrics import read_rows
from operant.run.records import Records, Rows, checkpoint_difference, difference, rows_difference
from operant.run.run import Run
from operant.spec.stored import stored

COUNTERS = ("frames", "updates", "episodes", "tokens")
OF_EPISODES = ("seed", "score", "length", "split")
INSTEAD = {"seed": "item"}
"""What an episode may have in place of a key: the problem that it is about, where problems have names."""
SPLITS = ("train", "eval", "final")
OF_EVALUATION = ("eval/", "final/")
KILLS = 3
EVALUATED = 3
ALERT = "not_finite"

MakeRun = Callable[[str, Mapping[str, Any]], Run]
"""A fresh session directory of this name for the same spec and seed, with these settings of `meta` changed."""


class Broken(Exception):
    """A promise is not kept; the text says what differs or is missing."""


@dataclass(frozen=True)
class Subject:
    """A session that was trained undisturbed, what it wrote, and how to make another of the same spec and seed."""

    run: Run
    records: Records
    make: MakeRun


def same_seed(subject: Subject) -> str:
    """The same spec and seed give the same bytes, in another process."""
    again = subject.make("again", {})
    finish(again)
    _must_be_equal(subject.records, Records.of(again))
    return f"2 runs, {_count(len(subject.records.checkpoints), 'checkpoint')}"


def kill_and_resume(subject: Subject) -> str:
    """A session killed at several moments and resumed equals the undisturbed one, or at least finishes.

    The first is promised by an algorithm that resumes exactly, the second by one that resumes warm.
    """
    broken = subject.make("killed", {})
    moments = kill_moments(len(subject.records.metrics))
    hit = [moment for moment in moments if kill(broken, moment)]
    if not hit:
        raise Broken(f"the session ended before it could be killed at {_listed(moments)}; give it more frames")
    finish(broken)
    spec = stored(subject.run.spec)
    kind = type(spec.agent.algorithm).resume_kind(subject.run.spec)
    if kind == "exact":
        _must_be_equal(subject.records, Records.of(broken))
    return f"{kind}; killed at {_listed(hit)}"


def rows(subject: Subject) -> str:
    """Every metric row has the counters, frames never fall and reach the budget, and a null was told as an alert."""
    table = subject.records.metrics
    lacking = [f"line {n} has no {key}" for n, row in enumerate(table, 1) for key in COUNTERS if key not in row]
    _refuse(METRICS_FILE, lacking)
    frames = [row["frames"] for row in table]
    _refuse(METRICS_FILE, [] if frames == sorted(frames) else ["frames do not grow"])
    last, budget = max(frames, default=0), subject.run.max_frame
    _refuse(METRICS_FILE, [] if last >= budget else [f"it ends at frame {last} of {budget}"])
    final = sum("final/score" in row for row in table)
    _refuse(METRICS_FILE, [] if final == 1 else [f"{final} rows have final/score, not 1"])
    alerts = [event["message"] for event in read_rows(subject.run.path / EVENTS_FILE) if event["kind"] == ALERT]
    told = {message.partition(" ")[0] for message in alerts}
    lost = sorted({key for row in table for key, value in row.items() if value is None})
    _refuse(METRICS_FILE, [f"{key} is not a finite number, and no alert said so" for key in lost if key not in told])
    return _count(len(table), "row") + (f", with alerts for {', '.join(lost)}" if lost else "")


def episodes(subject: Subject) -> str:
    """Every episode has a seed or problem, score, length and split; the final evaluation has as many as asked for."""
    table = subject.records.episodes
    lacking = [f"line {n} has no {key}" for n, row in enumerate(table, 1) for key in OF_EPISODES if _lacks(row, key)]
    _refuse(EPISODES_FILE, lacking)
    odd = sorted({row["split"] for row in table} - set(SPLITS))
    _refuse(EPISODES_FILE, [f"there is no split {each!r}" for each in odd])
    counts = {split: sum(row["split"] == split for row in table) for split in SPLITS}
    final, asked = counts["final"], subject.run.spec["meta"]["final_episodes"]
    _refuse(EPISODES_FILE, [] if final == asked else [f"{final} final episodes instead of {asked}"])
    return ", ".join(f"{number} {split}" for split, number in counts.items())


def evaluation(subject: Subject) -> str:
    """A checkpoint scores the same on the same seeds each time, and training goes the same way without evaluations."""
    first, second = _scores(subject.run), _scores(subject.run)
    if first != second:
        raise Broken(f"the same checkpoint and seeds scored {first} and then {second}")
    changed = difference(subject.records, Records.of(subject.run))
    if changed:
        raise Broken(f"evaluating changed the run: {changed}")
    quiet = subject.make("quiet", {"eval_frequency": subject.run.max_frame})
    finish(quiet)
    found = training_difference(subject.records, Records.of(quiet))
    if found:
        raise Broken(f"training goes another way without evaluations: {found}")
    return f"{_count(len(first), 'episode')} twice, and a run without evaluations"


CHECKS: dict[str, Callable[[Subject], str]] = {
    "same seed, same bytes": same_seed,
    "kill and resume": kill_and_resume,
    "rows": rows,
    "episodes": episodes,
    "evaluation": evaluation,
}


def kill_moments(rows: int) -> list[str]:
    """When to kill a session of so many rows: after rows spread over it, and in the midst of a checkpoint."""
    spread = {max(1, part * rows // (KILLS + 1)) for part in range(1, KILLS + 1)}
    return [*(f"row:{row}" for row in sorted(spread)), "checkpoint:1"]


def training_difference(first: Records, second: Records) -> str | None:
    """As `difference`, but of what training alone wrote: evaluations may have come at other frames."""
    found = rows_difference(METRICS_FILE, _of_training(first.metrics), _of_training(second.metrics))
    found = found or rows_difference(EPISODES_FILE, _trained(first.episodes), _trained(second.episodes))
    return found or checkpoint_difference(first.newest, second.newest)


def _lacks(episode: dict[str, Any], key: str) -> bool:
    """Whether an episode has no value for `key`; one that ended in an error has no score."""
    excused = key == "score" and episode.get("ended") == "error"
    return not excused and episode.get(key) is None and episode.get(INSTEAD.get(key, key)) is None


def _of_training(table: Rows) -> Rows:
    kept = [{key: value for key, value in row.items() if not key.startswith(OF_EVALUATION)} for row in table]
    return [row for row in kept if any("/" in key for key in row)]


def _trained(table: Rows) -> Rows:
    return [row for row in table if row["split"] == "train"]


def _scores(run: Run) -> list[float | None]:
    spec, newest = stored(run.spec), list_checkpoints(run.checkpoints)[-1]
    return [each.score for each in engine_of(spec).evaluate(run, newest, EVALUATED, spec.meta.eval_seed)]


def _must_be_equal(first: Records, second: Records) -> None:
    found = difference(first, second)
    if found:
        raise Broken(found)


def _refuse(file: str, problems: list[str]) -> None:
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise Broken(f"{file}: {problems[0]}{more}")


def _listed(moments: list[str]) -> str:
    return ", ".join(moment.replace(":", " ") for moment in moments)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
