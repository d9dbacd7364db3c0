"""`operant eval --tasks`: language models sit examinations, and a watcher examines the checkpoints of a running job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.model_references import Manner, of_model, of_run, runs_of
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, OperantError, UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import EvalSet, ModelReference
    from operant.report.task_scores import TaskScore
    from operant.run.checkpoint import Checkpoint
    from operant.run.run import Run

POLL_SECONDS = 5.0
OVER = ("done", "stopped", "failed")

Tasks = Annotated[
    str | None,
    typer.Option("--tasks", metavar="A,B", help="Examine a language model in these tasks; see `operant tasks`."),
]
Shots = Annotated[int | None, typer.Option("--shots", metavar="N", min=0, help="Solved examples before each problem.")]
Samples = Annotated[
    int, typer.Option("--samples", metavar="K", min=1, help="Answers to each problem, for pass@1 to pass@K.")
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N problems of each task.")]
TaskArguments = Annotated[
    list[str] | None,
    typer.Option(
        "--argument",
        "-a",
        metavar="KEY=VALUE",
        help="An argument of the tasks (shots=4), or of one (gsm8k.shots=4); may be repeated.",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", metavar="T", min=0, help="0 for one sample and 1 for several by default."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for the records of a bare model.")]
Follow = Annotated[bool, typer.Option("--follow", help="Examine each new checkpoint until the run is over.")]
Harness = Annotated[
    str | None,
    typer.Option("--harness", metavar="NAME", help="lm_eval, or lm_eval:hf for its own backend on the checkpoint."),
]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="POLICY",
        help="Search a tree of rollouts of a task of many turns: best_of_n, bfs or ucb; ucb:nodes=12,width=3.",
    ),
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Let this server write the answers.")]


@dataclass(frozen=True)
class Wishes:
    """What the options of an examination say."""

    tasks: str | None = None
    shots: int | None = None
    samples: int = 1
    limit: int | None = None
    arguments: list[str] = field(default_factory=list)
    temperature: float | None = None
    seed: int | None = None
    out: Path | None = None
    follow: bool = False
    harness: str | None = None
    manner: Manner = field(default_factory=Manner)
    search: str | None = None

    def refuse_without_tasks(self) -> None:
        """Every wish here is about tasks."""
        for name in ("shots", "limit", "arguments", "temperature", "out", "follow", "harness", "search"):
            if getattr(self, name) not in (None, False, []):
                raise UsageError(
                    f"--{name.rstrip('s') if name == 'arguments' else name} needs --tasks", remedy="--tasks gsm8k"
                )
        if self.samples != 1 or self.manner != Manner():
            raise UsageError("--samples, --device, --dtype and --url need --tasks", remedy="--tasks gsm8k")

    def paper(self, seed: int) -> EvalSet:
        """The examination that is wished for; `seed` is for those who name none."""
        from operant.cli.tasks import parsed
        from operant.engines import part

        names = tuple(dict.fromkeys(name.strip() for name in (self.tasks or "").split(",") if name.strip()))
        if not names:
            raise UsageError("--tasks names no task", remedy="--tasks gsm8k,math    (operant tasks lists them)")
        shots = {} if self.shots is None else {"shots": self.shots}
        chosen = seed if self.seed is None else self.seed
        if self.search is not None and self.samples > 1:
            raise UsageError("--samples has no effect with --search", remedy="--search best_of_n:nodes=N")
        return part("language", "evaluation.evaluator").EvalSet(
            names,
            shots | parsed(self.arguments),
            self.samples,
            self.temperature,
            limit=self.limit,
            seed=chosen,
            search=part("language", "rollouts.tree_search").parse_search(self.search) if self.search else None,
        )


@dataclass(frozen=True)
class Sitter:
    """Who sits an examination, and the file that its episodes are added to."""

    label: str
    candidate: ModelReference
    file: Path
    checkpoint: Checkpoint | None = None


def examine(target: str, checkpoint: str, root: Path, wishes: Wishes, as_json: bool) -> int:
    """Examine a run's checkpoints, or a model, and tell the scores."""
    runs = runs_of(target, root)
    if wishes.harness is not None:
        from operant.cli.harness import examine_by_harness

        return examine_by_harness(target, runs, checkpoint, root, wishes, as_json)
    paper = wishes.paper(runs[0].spec["meta"]["eval_seed"] if runs else 0)
    _check_tasks(paper)
    if wishes.follow:
        return _follow(target, runs, paper, wishes, as_json)
    if runs is None:
        sitters = [_bare(target, root, wishes)]
    else:
        from operant.api.runs import choose_checkpoint

        sitters = [_sitter(run, choose_checkpoint(run, checkpoint), wishes) for run in runs]
    rows = [_examined(sitter, paper, as_json) for sitter in sitters]
    if runs is None:
        _write_summary(sitters[0], paper, rows[0])
    if as_json:
        document({"examined": rows, "exit": EXIT_DONE})
    else:
        _tell_over_sessions(rows)
        from operant.run.layout import shown

        aside(f"records: {', '.join(shown(sitter.file) for sitter in sitters)}")
    return EXIT_DONE


def _check_tasks(paper: EvalSet) -> None:
    """Refuse unknown ones before any model is loaded, and say which of them do not take an argument."""
    from operant.engines import part

    evaluator = part("language", "evaluation.evaluator")
    evaluator.make_tasks(replace(paper, arguments={}))
    for line in evaluator.not_taken(paper):
        aside(f"note: {line}")


def _sitter(run: Run, checkpoint: Checkpoint, wishes: Wishes) -> Sitter:
    from operant.run.layout import EVALUATIONS_FILE

    label = f"{run.path.name} at frame {checkpoint.at.frames:,}"
    return Sitter(label, of_run(run, checkpoint, wishes.manner), run.path / EVALUATIONS_FILE, checkpoint)


def _bare(target: str, root: Path, wishes: Wishes) -> Sitter:
    from operant.run.layout import EPISODES_FILE

    return Sitter(target, of_model(target, wishes.manner), record_folder(target, root, wishes.out) / EPISODES_FILE)


def record_folder(target: str, root: Path, out: Path | None) -> Path:
    """The folder, not made yet, for the records of a model without a run."""
    from datetime import datetime

    from operant.run.layout import shown, stamp

    name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in Path(target).name) or "model"
    folder = out or root / "eval" / name / stamp(datetime.now())
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder has files already, and nothing is ever overwritten", place=shown(folder))
    return folder


def _examined(sitter: Sitter, paper: EvalSet, as_json: bool) -> dict[str, Any]:
    """Examine one candidate; its episodes are on disk as they come."""
    from operant.report.task_scores import exam_table

    scores = list(_scores(sitter, paper))
    if not as_json:
        say(sitter.label, *(f"  {line}" for line in exam_table(scores)))
    frames = sitter.checkpoint.at.frames if sitter.checkpoint else None
    return {"candidate": sitter.label, "frames": frames, "tasks": [each.as_dict() for each in scores]}


def _scores(sitter: Sitter, paper: EvalSet) -> Iterator[TaskScore]:
    from operant.engines import part
    from operant.report.task_scores import task_score
    from operant.run.metrics import JsonLines
    from operant.run.progress import Progress

    at = sitter.checkpoint.at if sitter.checkpoint else Progress()
    evaluator = part("language", "evaluation.evaluator")
    with evaluator.open_evaluator(sitter.candidate, paper) as asks:
        sitter.file.parent.mkdir(parents=True, exist_ok=True)
        log = JsonLines(sitter.file)
        try:
            for task in asks.tasks:
                result, written = evaluator.TaskResult(task.name), 0
                for result in asks.evaluate(task, at):
                    for episode in result.episodes[written:]:
                        log.append(episode.as_dict())
                    log.sync()
                    written = len(result.episodes)
                    aside(f"{sitter.label}: {task.name}: {plural(written, 'answer')} judged")
                yield task_score(task.name, [each for each in result.episodes if each.split == "eval"], result.seconds)
        finally:
            log.close()


def _write_summary(sitter: Sitter, paper: EvalSet, row: dict[str, Any]) -> None:
    from operant.cli.files import write_new
    from operant.run.documents import json_text

    facts = {
        "model": sitter.label,
        "dtype": sitter.candidate.dtype,
        "paper": vars(paper) | {"tasks": list(paper.tasks), "search": vars(paper.search) if paper.search else None},
    }
    write_new(sitter.file.with_name("eval.json"), json_text(facts | {"scores": row["tasks"]}), "--json")


def _tell_over_sessions(rows: list[dict[str, Any]]) -> None:
    """Where there are several sessions, the mean over them with its interval."""
    from operant.report.stats import mean_interval

    if len(rows) == 1:
        return
    for place, first in enumerate(rows[0]["tasks"]):
        scores = [row["tasks"][place]["score"] for row in rows]
        points = [score["point"] for score in scores if score is not None]
        if points:
            say(f"{first['task']}: {mean_interval(points).text(3)} over {plural(len(points), 'session')}")


def _follow(target: str, runs: list[Run] | None, paper: EvalSet, wishes: Wishes, as_json: bool) -> int:
    """Examine every checkpoint as it appears; the trainer notices nothing of it."""
    if runs is None:
        raise UsageError(f"--follow needs a run, and {target} is a model")
    rows, seen = [], set()
    while True:
        # Asked before the look at the folder, so that the last checkpoint of a run that ends now is not missed.
        over = all(run.state in OVER for run in runs)
        fresh = [(run, path) for run in runs for path in _unseen(run, seen)]
        for run, path in fresh:
            seen.add(path)
            row = _examined_while_there(run, path, paper, wishes, as_json)
            rows += [] if row is None else [row]
        if over and not fresh:
            break
        if not fresh:
            time.sleep(POLL_SECONDS)
    if as_json:
        document({"examined": rows, "exit": EXIT_DONE})
    else:
        say(f"the run is over; {plural(len(rows), 'checkpoint')} examined")
    return EXIT_DONE


def _unseen(run: Run, seen: set[Path]) -> list[Path]:
    from operant.run.layout import checkpoint_paths

    return [path for path in checkpoint_paths(run.checkpoints) if path not in seen]


def _examined_while_there(run: Run, path: Path, paper: EvalSet, wishes: Wishes, as_json: bool) -> dict[str, Any] | None:
    """The scores of a checkpoint, or None where the trainer removed it before it could be read."""
    from operant.run.checkpoint import verify

    try:
        return _examined(_sitter(run, verify(path), wishes), paper, as_json)
    except (OperantError, OSError):
        if path.exists():
            raise
        aside(f"{run.path.name}: the checkpoint at frame {int(path.name):,} was removed before it could be examined")
        return None
