"""`operant eval --harness lm_eval`: the same problems, scored by lm-evaluation-harness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.eval_options import EvalOptions
from operant.cli.model_references import of_model, of_run
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import ModelReference
    from operant.engines.language.evaluation.lm_eval_harness import HarnessScore
    from operant.run.run import Run

BACKENDS = {"lm_eval": "own", "lm_eval:hf": "hf", "lm_eval:vllm": "vllm"}


def evaluate_by_harness(
    target: str, runs: list[Run] | None, checkpoint: str, root: Path, options: EvalOptions, as_json: bool
) -> int:
    """Evaluate a checkpoint or a model by the harness, store its result for every answer, and print the scores."""
    from operant.cli.files import record_folder
    from operant.engines import part
    from operant.run.layout import shown

    backend = _backend(options)
    eval_set = options.eval_set(runs[0].spec["meta"]["eval_seed"] if runs else 0)
    folder = record_folder(target, root, options.out)
    rows = []
    for label, reference in _references(target, runs, checkpoint, options):
        results = part("language", "evaluation.lm_eval_harness").run_lm_eval(reference, eval_set, backend)  # pyright: ignore[reportArgumentType]
        rows.append({"candidate": label, "tasks": [_row(task, items) for task, items in results.items()]})
        if not as_json:
            say(label, *(f"  {line}" for line in _table(results)))
    _keep(
        folder,
        {"harness": options.harness, "paper": vars(eval_set) | {"tasks": list(eval_set.tasks)}, "examined": rows},
    )
    if as_json:
        document({"harness": options.harness, "examined": rows, "exit": EXIT_DONE})
    else:
        aside(f"records: {shown(folder)}")
    return EXIT_DONE


def _backend(options: EvalOptions) -> str:
    if options.harness not in BACKENDS:
        raise UsageError(f"there is no harness {options.harness!r}", remedy=f"--harness {' or '.join(BACKENDS)}")
    if options.samples != 1 or options.temperature or options.follow or options.manner.url:
        raise UsageError(
            "a harness scores one greedy answer to each problem: without --samples, --temperature, --follow, --url"
        )
    return BACKENDS[options.harness]


def _references(
    target: str, runs: list[Run] | None, checkpoint: str, options: EvalOptions
) -> list[tuple[str, ModelReference]]:
    from operant.api.runs import choose_checkpoint

    if runs is None:
        return [(target, of_model(target, options.manner))]
    chosen = [(run, choose_checkpoint(run, checkpoint)) for run in runs]
    return [
        (f"{run.path.name} at frame {saved.at.frames:,}", of_run(run, saved, options.manner)) for run, saved in chosen
    ]


def _row(task: str, results: list[HarnessScore]) -> dict[str, Any]:
    from operant.report.stats import episode_interval

    scores = {name: episode_interval([each.right[name] for each in results]).as_dict() for name in results[0].right}
    return {"task": task, "items": len(results), "exact_match": scores, "answers": [vars(each) for each in results]}


def _table(results: dict[str, list[HarnessScore]]) -> list[str]:
    from operant.report.formatting import columns
    from operant.report.stats import episode_interval

    filters = list(next(iter(results.values()))[0].right)
    rows = [
        [task, f"{len(items):,}", *(episode_interval([each.right[name] for each in items]).text(3) for name in filters)]
        for task, items in results.items()
    ]
    return columns([["task", "items", *(f"exact_match, {name}" for name in filters)], *rows], right={1})


def _keep(folder: Path, facts: dict[str, Any]) -> None:
    from operant.cli.files import write_new
    from operant.run.documents import json_text

    folder.mkdir(parents=True, exist_ok=True)
    write_new(folder / "lm_eval.json", json_text(facts), "--json")
