"""Tasks of a person's own MLGym checkout, run in our sandbox and marked where their scores cannot be trusted.

Their evaluator runs in a fresh sandbox with pristine copies of itself, its opponents and its labels; from the agent
come the declared files only, and files of labels are not in its workspace. What their format does not say is in the
tables here: which metric counts, which way is better, where it ends, and what is known to be wrong with a task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from operant.envs.research.checkout import Checkout, read_checkout
from operant.envs.research.grading import Unfit, Work, finite
from operant.envs.research.packages import Packages, installed, packages
from operant.envs.research.schema import MEBIBYTE, Budget, Metric, TaskFile
from operant.envs.research.source import Source
from operant.envs.text.dialogue import Scripted
from operant.errors import UsageError

Direction = Literal["up", "down"]

# The metrics of their tasks, the one that counts first: which way is better, and where it ends (None: nobody knows).
METRICS: dict[str, tuple[Direction, float | None]] = {
    "accuracy": ("up", 1.0),
    "validation_accuracy": ("up", 100.0),
    "r2": ("up", 1.0),
    "score": ("up", None),
    "reward mean": ("up", None),
    "bleu score": ("up", 1.0),
    "val_loss": ("down", 0.0),
    "time": ("down", 0.0),
    "rmse": ("down", 0.0),
}
# The best that honest play can reach, computed for these games.
CEILINGS = {"battleOfSexes": 1.440, "prisonersDilemma": 2.625, "blotto": 0.248}
ENTRIES = {"CSVSubmissionTasks": "csv", "PythonSubmissionTasks": "python"}
SUBMISSION = "submission.csv"
GPU_PACKAGES = {"jax", "torch", "tensorflow", "flax"}
TIMEOUT = 3600.0
CEILING_REMEDY = "-a ceiling=NUMBER, the best score that you know of"

FORGEABLE = "its evaluator runs the agent's code in its own process, so that a score can be forged: do not train on it"
ONE_SET = "its evaluator has one set of cases, so that validation and final score are not independent"
SAMPLE = "its labels are its sample submission: the score says how well that is copied"
WALL_CLOCK = "its score is wall-clock time, which a busy machine changes"


class Imported(Source):
    """A task of a checkout (final)."""

    def __init__(self, checkout: Checkout, ceiling: float | None, artefacts: Sequence[str] = ()) -> None:
        self._checkout = checkout
        self._direction: Direction
        self._measure, self._direction, natural = _metric(checkout)
        self._ceiling = _first(ceiling, CEILINGS.get(checkout.sheet.id), natural)
        self._artefacts = tuple(artefacts) or self._guessed_artefacts()
        self.task = self._described()
        self.marks = tuple(self._marks())

    @property
    def hidden(self) -> Path:
        """The checkout's own folder of tasks; the grader reads nothing there."""
        return self._checkout.file.parent

    @cached_property
    def packages(self) -> Packages:
        """What the starter code imports."""
        return packages(tuple(sorted(self._checkout.imports)))

    @property
    def agents(self) -> Mapping[str, Scripted]:
        """None: nobody has written any for them."""
        return {}

    def data(self, root: str | None) -> dict[str, Path]:
        """Nothing besides the checkout; `UsageError` where something of that is missing."""
        absent = [name for name in sorted(self._checkout.imports) if not installed(name)]
        missing = [*self._checkout.missing, *(f"the package {name} is not installed" for name in absent)]
        if missing:
            raise UsageError(f"this task cannot be run: {'; '.join(missing)}", place=str(self._checkout.file))
        return {}

    def files(self, data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
        """The starter code and the data, but for the labels."""
        everything = {**self._checkout.starter, **self._checkout.data}
        return {name: content for name, content in everything.items() if name not in self._checkout.labels}

    def grade(self, work: Work) -> float:
        """What their evaluator prints, run on pristine files and the agent's artefacts."""
        files = {**self._checkout.starter, **self._checkout.data, **work.artefacts}
        files |= {**self._checkout.labels, **self._checkout.opponents}
        files[self._checkout.evaluator] = self._checkout.starter[self._checkout.evaluator]
        line = ["python3", "-B", self._checkout.evaluator]
        if self._is_csv:
            work.artefact(SUBMISSION)
            line += ["--submission_file", SUBMISSION]
        with work.sandbox(files) as sandbox:
            ran = sandbox.run(line, seconds=self.task.limits.seconds, environment=work.packages.environment)
        if ran.code or ran.killed:
            raise Unfit(f"the evaluator failed: {(ran.killed or ran.err.decode(errors='replace')).strip()[-500:]}")
        return self._measured(ran.out.decode(errors="replace"))

    def _measured(self, printed: str) -> float:
        for text in (printed, *reversed(printed.splitlines())):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict) and self._measure in found:
                return finite(found[self._measure], self._measure)
        raise Unfit(f"the evaluator printed no {self._measure}")

    @property
    def _is_csv(self) -> bool:
        return ENTRIES.get(self._checkout.sheet.task_entrypoint) == "csv"

    def _guessed_artefacts(self) -> tuple[str, ...]:
        """A submission, or the programs that are neither the evaluator's nor the other side's."""
        entry = self._checkout.sheet.task_entrypoint
        if entry not in ENTRIES:
            raise UsageError(
                f"its entry point {entry} does not say which files are scored",
                place=str(self._checkout.file),
                remedy="-a artefacts='[\"config.yaml\"]'",
            )
        if self._is_csv:
            return (SUBMISSION,)
        fixed = {*self._checkout.sheet.evaluation_paths, *self._checkout.opponents}
        return tuple(name for name in self._checkout.starter if name.endswith(".py") and name not in fixed)

    def _described(self) -> TaskFile:
        sheet, place = self._checkout.sheet, str(self._checkout.file)
        baseline = sheet.baseline_scores[0].get(self._measure) if sheet.baseline_scores else None
        if baseline is None:
            raise UsageError(f"it has no baseline score {self._measure}", place=place, remedy="add it: baseline_scores")
        if self._ceiling is None:
            raise UsageError(f"nobody knows where {self._measure} ends", place=place, remedy=CEILING_REMEDY)
        docs = "\n".join(dataset.description for dataset in self._checkout.datasets)
        seconds = sheet.training_timeout or TIMEOUT
        size = sum(map(len, (*self._checkout.starter.values(), *self._checkout.data.values())))
        limits = Budget(turns=50, seconds=seconds, total_seconds=4 * seconds, disk_mb=256 + 2 * size // MEBIBYTE)
        return TaskFile(
            name=f"mlgym_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+', '_', sheet.id).lower().strip('_')}",
            about=f"{sheet.name}, of a checkout of MLGym"[:100],
            prompt=sheet.description.replace("{dataset_docs}", docs),
            artefacts=self._artefacts,
            metric=Metric(name=self._measure, direction=self._direction),
            baseline=baseline,
            ceiling=self._ceiling,
            limits=limits.model_copy(update={"memory_mb": 4096 + 2 * limits.disk_mb, "processes": 64}),
        )

    def _marks(self) -> list[str]:
        found = [ONE_SET, *self._checkout.missing]
        found += [FORGEABLE] if not self._is_csv else []
        found += [SAMPLE] if self._checkout.sample in self._checkout.labels.values() else []
        found += [WALL_CLOCK] if self._measure.lower() == "time" else []
        heavy = sorted(self._checkout.imports & GPU_PACKAGES)
        return [*found, *([f"it imports {', '.join(heavy)} and may want a GPU"] if heavy else [])]


def load_imported(file: str, ceiling: float | None = None, artefacts: Sequence[str] = ()) -> Imported:
    """The task of a YAML file of a checkout."""
    return Imported(read_checkout(file), ceiling, artefacts)


def _metric(checkout: Checkout) -> tuple[str, Direction, float | None]:
    """The metric that counts: of those with a baseline, the first that the table knows."""
    scores = checkout.sheet.baseline_scores[0] if checkout.sheet.baseline_scores else {}
    known = {name.lower(): name for name in scores}
    for name, (direction, end) in METRICS.items():
        if name in known:
            return known[name], direction, end
    raise UsageError(
        f"none of its metrics is known: {', '.join(scores) or 'it has no baseline_scores'}",
        place=str(checkout.file),
        remedy=f"known are {', '.join(METRICS)}",
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
