"""lm-evaluation-harness on local problems: our prompts, stop strings and limits; its extraction and its metrics.

The tasks are written into a temporary folder in its own words, so nothing is fetched. It then asks either this
engine's generator (`own`) or a backend of its own (`hf`, `vllm`) that loads the model as a folder.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from operant.engines.language.evaluation.evaluator import (
    EvalSet,
    Evaluator,
    ModelReference,
    open_evaluator,
    problems_of,
)
from operant.engines.language.policy.chat_template import as_text
from operant.engines.language.policy.model import write_folder
from operant.envs.text.task import Task
from operant.errors import UsageError
from operant.install import missing_package

Backend = Literal["own", "hf", "vllm"]
NUMBERS = ("gsm8k", "svamp")
"""Tasks whose answer is one number, which the harness's two usual filters find."""

STRICT, FLEXIBLE = "strict-match", "flexible-extract"
FILTERS = [
    {
        "name": STRICT,
        "filter": [{"function": "regex", "regex_pattern": "#### (\\-?[0-9\\.\\,]+)"}, {"function": "take_first"}],
    },
    {
        "name": FLEXIBLE,
        "filter": [
            {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"},
            {"function": "take_first"},
        ],
    },
]
EXACT = {
    "metric": "exact_match",
    "aggregation": "mean",
    "higher_is_better": True,
    "ignore_case": True,
    "ignore_punctuation": False,
    "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"],
}


@dataclass(frozen=True)
class HarnessScore:
    """What the harness made of one answer: `right` maps the name of a filter to 0 or 1."""

    item: str
    answer: str
    right: dict[str, float]


def run_lm_eval(reference: ModelReference, eval_set: EvalSet, backend: Backend) -> dict[str, list[HarnessScore]]:
    """The scores of every task's greedy answers."""
    _require_package()
    _refuse_other_tasks(eval_set)
    with (
        open_evaluator(reference, eval_set) as evaluator,
        tempfile.TemporaryDirectory(prefix="operant-lm-eval-") as place,
    ):
        folder = Path(place)
        names = [_write_task(task, evaluator, reference, folder) for task in evaluator.tasks]
        found = _evaluate(evaluator, reference, backend, names, folder)
    return {
        task.name: _scores(found["samples"][name], evaluator, task)
        for task, name in zip(evaluator.tasks, names, strict=True)
    }


def _require_package() -> None:
    # Read when the package is loaded; the problems are files here, and nothing else is to be asked for.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    try:
        import lm_eval  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "lm_eval", "--harness lm_eval") from missing


def _refuse_other_tasks(eval_set: EvalSet) -> None:
    for name in eval_set.tasks:
        if name not in NUMBERS:
            raise UsageError(
                f"--harness lm_eval is for tasks whose answer is one number ({', '.join(NUMBERS)}), not for {name}",
                remedy=f"operant eval MODEL --tasks {name}",
            )


def _write_task(task: Task, evaluator: Evaluator, reference: ModelReference, folder: Path) -> str:
    """The problems as rows and the task as a configuration; returns the name it has there."""
    problems = problems_of(task, evaluator.eval_set)
    rows = [
        {
            "item": one.id,
            "prompt": as_text(one, evaluator.policy, reference.template),
            "number": str(one.answer["number"]),
        }
        for one in problems
    ]
    file = folder / f"{task.name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    first = evaluator.worker.prompt(problems[0])
    name = f"operant_{task.name}"
    configuration = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}, "cache_dir": str(folder / "cache")},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{number}}",
        "num_fewshot": 0,
        "generation_kwargs": {
            "until": list(first.stop),
            "max_gen_toks": first.max_tokens,
            "do_sample": False,
            "temperature": 0.0,
        },
        "filter_list": FILTERS,
        "metric_list": [EXACT],
        "metadata": {"version": 1.0},
    }
    # JSON is YAML too, and quotes newlines without surprises.
    (folder / f"{name}.yaml").write_text(json.dumps(configuration), encoding="utf-8")
    return name


def _evaluate(
    evaluator: Evaluator, reference: ModelReference, backend: Backend, names: Sequence[str], folder: Path
) -> dict[str, Any]:
    from lm_eval import simple_evaluate  # pyright: ignore[reportMissingImports]
    from lm_eval.tasks import TaskManager  # pyright: ignore[reportMissingImports]

    if backend == "own":
        from operant.engines.language.evaluation.lm_eval_model import OperantModel

        model: dict[str, Any] = {"model": OperantModel(evaluator.policy, evaluator.worker.generator)}
    else:
        source = write_folder(evaluator.policy, folder / "model")
        model = {"model": backend, "model_args": {"pretrained": str(source), "dtype": reference.dtype}}
    if backend == "hf":
        model |= {"device": str(next(evaluator.policy.model.parameters()).device), "batch_size": 16}
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found = simple_evaluate(**model, tasks=list(names), task_manager=manager, log_samples=True, bootstrap_iters=0)
    assert found is not None  # only a process of another rank gets nothing
    return dict(found)


def _scores(samples: Sequence[dict[str, Any]], evaluator: Evaluator, task: Task) -> list[HarnessScore]:
    """One record for each item; the harness has one for each item and filter."""
    merged: dict[str, HarnessScore] = {}
    for sample in samples:
        item = sample["doc"]["item"]
        right = {sample["filter"]: float(sample["exact_match"])}
        known = merged.get(item)
        merged[item] = HarnessScore(item, sample["resps"][0][0], {**(known.right if known else {}), **right})
    asked = [problem.id for problem in problems_of(task, evaluator.eval_set)]
    return [merged[item] for item in asked]
