"""Tasks of a person's own MLGym checkout, run in our sandbox and marked where their scores cannot be trusted.

Their evaluation file runs in a fresh sandbox with pristine copies of itself, its opponents and its labels; from the
agent come the declared files only, and labels are not in its workspace. What their format does not say is in the
tables here: which metric counts, which way is better, where it ends, and what is known to be wrong with a task.
"""

from __future__ import annotations

import ast
import glob
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from operant.envs.research.grading import Work
from operant.envs.research.mlgym.agents import agents_of
from operant.envs.research.mlgym.checkout import Checkout, read_checkout, tree_of
from operant.envs.research.mlgym.datasets import ASKED_FOR, DATA, Found, asked_names, find_dataset, find_models
from operant.envs.research.mlgym.evaluation import Evaluation
from operant.envs.research.mlgym.layouts import without_labels
from operant.envs.research.mlgym.submission import FORMS, submission_of
from operant.envs.research.packages import Packages, installed, packages
from operant.envs.research.schema import MEBIBYTE, Budget, Metric, TaskFile
from operant.envs.research.source import Source
from operant.envs.text.dialogue import Scripted
from operant.errors import UsageError
from operant.install import install_module

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
# The best that honest play can reach, computed for these games; a car's way up the mountain is worth 100.
CEILINGS = {
    "battleOfSexes": 1.440,
    "prisonersDilemma": 2.625,
    "blotto": 0.248,
    "rlMountainCarContinuous": 100.0,
    "rlMountainCarContinuousReinforce": 100.0,
}
GPU_PACKAGES = {"jax", "torch", "tensorflow", "flax"}
# What the common environment of their container holds, by the names that are imported; datasets decode pictures by PIL.
GENERIC = (
    "PIL",
    "accelerate",
    "datasets",
    "matplotlib",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "torch",
    "tqdm",
    "transformers",
)
TIMEOUT = 3600.0
MODEL_MB = 1_024  # of a checkpoint
DATA_FILE = re.compile(r"\.(csv|json|jsonl|pkl|parquet|txt|npy|npz|bin)$")
# Hub packages look for nothing outside, and keep what they make of data out of the workspace.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HOME": "/tmp/huggingface", "TOKENIZERS_PARALLELISM": "false"}

FORGEABLE = "its evaluation runs the agent's code in its own process, so that a score can be forged: do not train on it"
SELF_REPORTED = "its evaluation only averages a column that the agent writes, so that any score can be written"
ONE_SET = "its evaluation has one set of cases, so that validation and final score are not independent"
SAMPLE = "its labels are its sample submission: the score says how well that is copied"
WALL_CLOCK = "its score is wall-clock time, which a busy machine changes"
NO_CEILING = "nobody knows where its metric ends: 1 is twice as good as the baseline (-a ceiling=NUMBER)"
PRISTINE_MODEL = "the model's class is the starter code's; -a artefacts=... hands in code too, which can forge a score"


class Imported(Source):
    """A task of a checkout (final). `places` are folders of data; `forgeable` runs it though a score can be written."""

    agent_kinds = ("novice", "cheater")

    def __init__(
        self,
        checkout: Checkout,
        ceiling: float | None = None,
        artefacts: Sequence[str] = (),
        places: str | None = None,
        forgeable: bool = False,
    ) -> None:
        self.checkout = checkout
        self.submission = submission_of(checkout, artefacts)
        self._direction: Direction
        self._measure, self._direction, end = _metric(checkout)
        self._known_ceiling = next(
            (each for each in (ceiling, CEILINGS.get(checkout.sheet.id), end) if each is not None), None
        )
        everything = [find_dataset(checkout.root, file, each, places) for file, each in checkout.datasets.items()]
        everything += find_models(checkout, self.submission.artefacts, places)
        self._sheets = list(checkout.datasets.values())
        self._found = everything
        self.lacking = tuple(self._lacking(forgeable))
        self.task = self._described()
        self.marks = tuple(self._marks())

    @property
    def hidden(self) -> Path:
        """The checkout's own folder of tasks; the grader reads nothing there."""
        return self.checkout.file.parent

    @cached_property
    def packages(self) -> Packages:
        """What the starter code imports and what their common environment holds, as far as it is installed."""
        wanted = self.checkout.imports | set(GENERIC if self.checkout.sheet.use_generic_conda else ())
        shown = packages(tuple(sorted(name for name in wanted if installed(name))))
        return replace(shown, environment={**shown.environment, **OFFLINE})

    @property
    def agents(self) -> Mapping[str, Scripted]:
        """Its baseline, an idle one, and those that try to cheat."""
        return agents_of(self.checkout, self.submission)

    @property
    def sources(self) -> str:
        """Where its data comes from."""
        return ", ".join(each.source for each in self._found if isinstance(each, Found)) or "none needed"

    def data(self, root: str | None) -> dict[str, Path]:
        """Nothing besides what is read already; `UsageError` where something is missing."""
        del root
        if self.lacking:
            raise UsageError(f"this task cannot be run: {'; '.join(self.lacking)}", place=str(self.checkout.file))
        return {}

    def files(self, data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
        """The starter code and the data, but for the labels."""
        del data, seed
        return {name: content for name, content in self._shown.items() if name not in self._labels}

    def grade(self, work: Work) -> float:
        """What their evaluation prints, run on pristine files and the agent's artefacts."""
        return self._evaluation.grade(work)

    @cached_property
    def _evaluation(self) -> Evaluation:
        splits = tuple(sorted(self.checkout.evaluator_texts))
        seconds = self.task.limits.seconds
        return Evaluation(
            checkout=self.checkout,
            submission=self.submission,
            measure=self._measure,
            seconds=seconds,
            pristine=self._pristine,
            splits=splits,
            apart=not self._is_timed,
            models=tuple(each.name for each in self._found[len(self._sheets) :]),
        )

    @cached_property
    def _labels(self) -> dict[str, bytes]:
        return self.checkout.labels(self._pristine)

    @cached_property
    def _pristine(self) -> dict[str, bytes]:
        """All files that the evaluation may read."""
        return {**self.checkout.starter, **self._data(lambda files: files)}

    @cached_property
    def _shown(self) -> dict[str, bytes]:
        """All files, with nothing in the place of labels that are columns of the hub's tables."""
        splits = tuple(self.checkout.evaluator_texts)
        return {**self.checkout.starter, **self._data(lambda files: without_labels(files, splits))}

    def _data(self, hub: Callable[[dict[str, bytes]], dict[str, bytes]]) -> dict[str, bytes]:
        """The data of datasets and models in the workspace; `hub` changes that of the hub."""
        found: dict[str, bytes] = {}
        for sheet, each in zip(self._sheets, self._found, strict=False):
            assert isinstance(each, Found), "data() has refused it"
            files = each.read() if sheet.is_local else hub(each.read())
            folders = [DATA] if sheet.is_local else asked_names(self.checkout, sheet)
            found |= {f"{folder}/{name}": content for folder in folders for name, content in files.items()}
        for model in self._found[len(self._sheets) :]:
            found |= model.read() if isinstance(model, Found) else {}
        return found

    @property
    def _is_timed(self) -> bool:
        """Whether the score is time: then a program must run where it is measured."""
        return self._measure.lower() == "time"

    def _lacking(self, forgeable: bool) -> Iterator[str]:
        yield from self.checkout.missing
        yield from (each.cause for each in self._found if not isinstance(each, Found))
        if absent := _absent(self.checkout.evaluator_imports):
            yield f"its evaluation imports packages that are not installed: {absent}"
        if self._wants_gpu and not glob.glob("/dev/nvidia*"):
            yield "its evaluation asserts that there is an accelerator, and there is none here"
        if self._is_self_reported and not forgeable:
            yield f"{SELF_REPORTED} (-a forgeable=true runs it all the same)"

    @property
    def _wants_gpu(self) -> bool:
        asserted = (node for node in ast.walk(self._evaluator_tree) if isinstance(node, ast.Assert))
        return any("cuda.is_available" in ast.unparse(node.test) for node in asserted)

    @property
    def _is_self_reported(self) -> bool:
        """Whether the evaluation reads nothing but the submission."""
        source = self.checkout.starter.get(self.checkout.evaluator)
        reads = any(DATA_FILE.search(text) for text in self.checkout.evaluator_texts if text.count("\n") == 0)
        asks = source is not None and ASKED_FOR.search(source.decode(errors="replace"))
        return self.submission.form == "csv" and source is not None and not reads and not asks

    @property
    def _evaluator_tree(self) -> ast.Module:
        return tree_of(self.checkout.starter.get(self.checkout.evaluator, b""))

    def _described(self) -> TaskFile:
        sheet = self.checkout.sheet
        baseline = sheet.baseline_scores[0][self._measure]
        twice = baseline + (abs(baseline) or 1.0) * (1 if self._direction == "up" else -1)
        docs = "\n".join(f"{each.name.upper()}:\n{each.description}\n" for each in self.checkout.datasets.values())
        try:
            return TaskFile(
                name=_task_name(sheet.id),
                about=f"{sheet.name}, of a checkout of MLGym"[:100],
                prompt=sheet.description.replace("{dataset_docs}", docs),
                artefacts=self.submission.artefacts,
                metric=Metric(name=self._measure, direction=self._direction),
                baseline=baseline,
                ceiling=twice if self._known_ceiling is None else self._known_ceiling,
                limits=self._limits(),
            )
        except ValidationError as fault:
            said = fault.errors(include_url=False)[0]
            raise UsageError(
                f"{'.'.join(map(str, said['loc']))}: {said['msg'].removeprefix('Value error, ')}",
                place=sheet.place("baseline_scores"),
                remedy="-a ceiling=NUMBER, the best score that you know of",
            ) from None

    def _limits(self) -> Budget:
        seconds = self.checkout.sheet.training_timeout or TIMEOUT
        size = sum(map(len, self.checkout.starter.values()))
        size += sum(each.size for each in self._found if isinstance(each, Found))
        model = MODEL_MB if self.submission.form in ("model", "language model") else 0
        disk = 256 + 2 * model + 4 * size // MEBIBYTE
        return Budget(
            turns=50,
            seconds=seconds,
            total_seconds=4 * seconds,
            disk_mb=disk,
            memory_mb=8_192 + 2 * disk,
            artefact_mb=max(model, 16),
            processes=256 if self.checkout.imports & GPU_PACKAGES else 64,
            gpu=self._wants_gpu and bool(glob.glob("/dev/nvidia*")),
        )

    def _marks(self) -> Iterator[str]:
        yield ONE_SET
        yield from self.lacking
        yield from (each.mark for each in self._found if isinstance(each, Found) and each.mark)
        if self.checkout.sheet.task_entrypoint not in FORMS:
            yield f"MLGym has no task class {self.checkout.sheet.task_entrypoint}: it is read as CSVSubmissionTasks"
        if self.submission.programs and (self._is_timed or self.submission.form != "program"):
            yield FORGEABLE
        if self.submission.form in ("model", "language model") and not self.submission.programs:
            yield PRISTINE_MODEL
        if self._is_self_reported:
            yield SELF_REPORTED
        if self._known_ceiling is None:
            yield NO_CEILING
        if self._is_timed:
            yield WALL_CLOCK
        if self.checkout.sample is not None and not self.lacking and self.checkout.sample in self._labels.values():
            yield SAMPLE
        if absent := _absent(self.checkout.imports - self.checkout.evaluator_imports):
            yield f"its starter code imports packages that are not installed: {absent}"
        heavy = sorted(self.checkout.imports & GPU_PACKAGES)
        if heavy:
            yield f"it imports {', '.join(heavy)} and may want a GPU"


def load_imported(
    file: str,
    ceiling: float | None = None,
    artefacts: Sequence[str] = (),
    places: str | None = None,
    forgeable: bool = False,
) -> Imported:
    """The task of a YAML file of a checkout."""
    return Imported(read_checkout(file), ceiling, artefacts, places, forgeable)


def _absent(names: set[str]) -> str:
    """The packages among these that are not installed, with the command that installs them."""
    first, *rest = [name for name in sorted(names) if not installed(name)] or [""]
    distributions = [name.replace("_", "-") for name in rest]
    return f"{', '.join([first, *rest])} ({' '.join([install_module(first), *distributions])})" if first else ""


def _task_name(ident: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", ident).lower().strip("_")
    return f"mlgym_{words}"


def _metric(checkout: Checkout) -> tuple[str, Direction, float | None]:
    """The metric that counts: of those with a baseline, the first that the table knows."""
    scores = checkout.sheet.baseline_scores[0] if checkout.sheet.baseline_scores else {}
    known = {name.lower(): name for name in scores}
    for name, (direction, end) in METRICS.items():
        if name in known:
            return known[name], direction, end
    raise UsageError(
        f"none of its metrics is known: {', '.join(map(str, scores)) or 'it has no baseline_scores'}",
        place=checkout.sheet.place("baseline_scores"),
        remedy=f"baseline_scores: [{{NAME: NUMBER}}], with a NAME of {', '.join(METRICS)}",
    )
