"""`operant eval --tasks`: evaluate language models on tasks, and the checkpoints of a running job as they appear."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.eval_options import EvalOptions
from operant.cli.files import record_folder
from operant.cli.model_references import of_model, of_run, runs_of
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, OperantError, UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import EvalSet, ModelReference
    from operant.report.task_scores import TaskScore
    from operant.run.checkpoint import Checkpoint
    from operant.run.run import Run

POLL_SECONDS = 5.0
OVER = ("done", "stopped", "failed")


@dataclass(frozen=True)
class EvaluatedModel:
    """A model to evaluate, and the file that its episodes are added to."""

    label: str
    reference: ModelReference
    file: Path
    checkpoint: Checkpoint | None = None


def evaluate_on_tasks(target: str, checkpoint: str, root: Path, options: EvalOptions, as_json: bool) -> int:
    """Evaluate a run's checkpoints, or a model, and print the scores."""
    runs = runs_of(target, root)
    if options.harness is not None:
        from operant.cli.harness import evaluate_by_harness

        return evaluate_by_harness(target, runs, checkpoint, root, options, as_json)
    eval_set = options.eval_set(runs[0].spec["meta"]["eval_seed"] if runs else 0)
    _check_tasks(eval_set)
    if options.follow:
        return _follow(target, runs, eval_set, options, as_json)
    if runs is None:
        models = [_bare(target, root, options)]
    else:
        from operant.api.runs import choose_checkpoint

        models = [_of_checkpoint(run, choose_checkpoint(run, checkpoint), options) for run in runs]
    rows = [_evaluate(model, eval_set, as_json) for model in models]
    if runs is None:
        _write_summary(models[0], eval_set, rows[0])
    if as_json:
        document({"examined": rows, "exit": EXIT_DONE})
    else:
        _print_mean_over_sessions(rows)
        from operant.run.layout import shown

        aside(f"records: {', '.join(shown(model.file) for model in models)}")
    return EXIT_DONE


def _check_tasks(eval_set: EvalSet) -> None:
    """Refuse unknown ones before any model is loaded, and say which of them do not take an argument."""
    from operant.engines import part

    evaluator = part("language", "evaluation.evaluator")
    evaluator.make_tasks(replace(eval_set, arguments={}))
    for line in evaluator.not_taken(eval_set):
        aside(f"note: {line}")


def _of_checkpoint(run: Run, checkpoint: Checkpoint, options: EvalOptions) -> EvaluatedModel:
    from operant.run.layout import EVALUATIONS_FILE

    label = f"{run.path.name} at frame {checkpoint.at.frames:,}"
    return EvaluatedModel(label, of_run(run, checkpoint, options.manner), run.path / EVALUATIONS_FILE, checkpoint)


def _bare(target: str, root: Path, options: EvalOptions) -> EvaluatedModel:
    from operant.run.layout import EPISODES_FILE

    return EvaluatedModel(
        target, of_model(target, options.manner), record_folder(target, root, options.out) / EPISODES_FILE
    )


def _evaluate(model: EvaluatedModel, eval_set: EvalSet, as_json: bool) -> dict[str, Any]:
    """Evaluate one model; its episodes are written as they come."""
    from operant.report.task_scores import score_table

    scores = list(_scores(model, eval_set))
    if not as_json:
        say(model.label, *(f"  {line}" for line in score_table(scores)))
    frames = model.checkpoint.at.frames if model.checkpoint else None
    return {"candidate": model.label, "frames": frames, "tasks": [each.as_dict() for each in scores]}


def _scores(model: EvaluatedModel, eval_set: EvalSet) -> Iterator[TaskScore]:
    from operant.engines import part
    from operant.report.task_scores import task_score
    from operant.run.metrics import JsonLines
    from operant.run.progress import Progress

    at = model.checkpoint.at if model.checkpoint else Progress()
    evaluator = part("language", "evaluation.evaluator")
    with evaluator.open_evaluator(model.reference, eval_set) as asks:
        model.file.parent.mkdir(parents=True, exist_ok=True)
        log = JsonLines(model.file)
        try:
            for task in asks.tasks:
                result, written = evaluator.TaskResult(task.name), 0
                for result in asks.evaluate(task, at):
                    for episode in result.episodes[written:]:
                        log.append(episode.as_dict())
                    log.sync()
                    written = len(result.episodes)
                    aside(f"{model.label}: {task.name}: {plural(written, 'answer')} scored")
                yield task_score(task.name, [each for each in result.episodes if each.split == "eval"], result.seconds)
        finally:
            log.close()


def _write_summary(model: EvaluatedModel, eval_set: EvalSet, row: dict[str, Any]) -> None:
    from operant.cli.files import write_new
    from operant.run.documents import json_text

    facts = {
        "model": model.label,
        "dtype": model.reference.dtype,
        "paper": vars(eval_set)
        | {"tasks": list(eval_set.tasks), "search": vars(eval_set.search) if eval_set.search else None},
    }
    write_new(model.file.with_name("eval.json"), json_text(facts | {"scores": row["tasks"]}), "--json")


def _print_mean_over_sessions(rows: list[dict[str, Any]]) -> None:
    """Where there are several sessions, the mean over them with its interval."""
    from operant.report.stats import mean_interval

    if len(rows) == 1:
        return
    for place, first in enumerate(rows[0]["tasks"]):
        scores = [row["tasks"][place]["score"] for row in rows]
        points = [score["point"] for score in scores if score is not None]
        if points:
            say(f"{first['task']}: {mean_interval(points).text(3)} over {plural(len(points), 'session')}")


def _follow(target: str, runs: list[Run] | None, eval_set: EvalSet, options: EvalOptions, as_json: bool) -> int:
    """Evaluate every checkpoint as it appears, without any effect on the training."""
    if runs is None:
        raise UsageError(f"--follow needs a run, and {target} is a model")
    rows, known = [], set()
    while True:
        # Asked before the look at the folder, so that the last checkpoint of a run that ends now is not missed.
        over = all(run.state in OVER for run in runs)
        fresh = [(run, path) for run in runs for path in _new_checkpoints(run, known)]
        for run, path in fresh:
            known.add(path)
            row = _evaluate_while_there(run, path, eval_set, options, as_json)
            rows += [] if row is None else [row]
        if over and not fresh:
            break
        if not fresh:
            time.sleep(POLL_SECONDS)
    if as_json:
        document({"examined": rows, "exit": EXIT_DONE})
    else:
        say(f"the run is over; {plural(len(rows), 'checkpoint')} evaluated")
    return EXIT_DONE


def _new_checkpoints(run: Run, known: set[Path]) -> list[Path]:
    from operant.run.layout import checkpoint_paths

    return [path for path in checkpoint_paths(run.checkpoints) if path not in known]


def _evaluate_while_there(
    run: Run, path: Path, eval_set: EvalSet, options: EvalOptions, as_json: bool
) -> dict[str, Any] | None:
    """The scores of a checkpoint, or None where the trainer removed it before it could be read."""
    from operant.run.checkpoint import verify

    try:
        return _evaluate(_of_checkpoint(run, verify(path), options), eval_set, as_json)
    except (OperantError, OSError):
        if path.exists():
            raise
        aside(f"{run.path.name}: the checkpoint at frame {int(path.name):,} was removed before it could be evaluated")
        return None
