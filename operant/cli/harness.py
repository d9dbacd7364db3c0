"""`operant eval --harness lm_eval`: the same problems, judged by lm-evaluation-harness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.model_references import of_model, of_run
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.cli.model_evaluation import Wishes
    from operant.engines.language.evaluation.evaluator import ModelReference
    from operant.engines.language.evaluation.lm_eval_harness import HarnessScore
    from operant.run.run import Run

BACKENDS = {"lm_eval": "own", "lm_eval:hf": "hf", "lm_eval:vllm": "vllm"}


def examine_by_harness(
    target: str, runs: list[Run] | None, checkpoint: str, root: Path, wishes: Wishes, as_json: bool
) -> int:
    """Hand a checkpoint or a model to the harness, keep what it made of every answer, and tell its scores."""
    from operant.cli.model_evaluation import record_folder
    from operant.engines import part
    from operant.run.layout import shown

    backend = _backend(wishes)
    paper = wishes.paper(runs[0].spec["meta"]["eval_seed"] if runs else 0)
    folder = record_folder(target, root, wishes.out)
    rows = []
    for label, candidate in _candidates(target, runs, checkpoint, wishes):
        judged = part("language", "evaluation.lm_eval_harness").run_lm_eval(candidate, paper, backend)  # pyright: ignore[reportArgumentType]
        rows.append({"candidate": label, "tasks": [_row(task, items) for task, items in judged.items()]})
        if not as_json:
            say(label, *(f"  {line}" for line in _table(judged)))
    _keep(folder, {"harness": wishes.harness, "paper": vars(paper) | {"tasks": list(paper.tasks)}, "examined": rows})
    if as_json:
        document({"harness": wishes.harness, "examined": rows, "exit": EXIT_DONE})
    else:
        aside(f"records: {shown(folder)}")
    return EXIT_DONE


def _backend(wishes: Wishes) -> str:
    if wishes.harness not in BACKENDS:
        raise UsageError(f"there is no harness {wishes.harness!r}", remedy=f"--harness {' or '.join(BACKENDS)}")
    if wishes.samples != 1 or wishes.temperature or wishes.follow or wishes.manner.url:
        raise UsageError(
            "a harness judges one greedy answer to each problem: without --samples, --temperature, --follow, --url"
        )
    return BACKENDS[wishes.harness]


def _candidates(
    target: str, runs: list[Run] | None, checkpoint: str, wishes: Wishes
) -> list[tuple[str, ModelReference]]:
    from operant.api.runs import choose_checkpoint

    if runs is None:
        return [(target, of_model(target, wishes.manner))]
    chosen = [(run, choose_checkpoint(run, checkpoint)) for run in runs]
    return [
        (f"{run.path.name} at frame {saved.at.frames:,}", of_run(run, saved, wishes.manner)) for run, saved in chosen
    ]


def _row(task: str, judged: list[HarnessScore]) -> dict[str, Any]:
    from operant.report.stats import episode_interval

    scores = {name: episode_interval([each.right[name] for each in judged]).as_dict() for name in judged[0].right}
    return {"task": task, "items": len(judged), "exact_match": scores, "answers": [vars(each) for each in judged]}


def _table(judged: dict[str, list[HarnessScore]]) -> list[str]:
    from operant.report.formatting import columns
    from operant.report.stats import episode_interval

    filters = list(next(iter(judged.values()))[0].right)
    rows = [
        [task, f"{len(items):,}", *(episode_interval([each.right[name] for each in items]).text(3) for name in filters)]
        for task, items in judged.items()
    ]
    return columns([["task", "items", *(f"exact_match, {name}" for name in filters)], *rows], right={1})


def _keep(folder: Path, facts: dict[str, Any]) -> None:
    from operant.cli.files import write_new
    from operant.run.documents import json_text

    folder.mkdir(parents=True, exist_ok=True)
    write_new(folder / "lm_eval.json", json_text(facts), "--json")
