"""What becomes of all task files of a checkout: which are imported, which run, what their baselines score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from operant.envs.research.mlgym.datasets import Found, read_dataset
from operant.envs.research.mlgym.sheets import CONFIGS
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import play_script
from operant.errors import OperantError, UsageError

TASKS, DATASETS = f"{CONFIGS}/tasks", f"{CONFIGS}/datasets"


@dataclass(frozen=True)
class Row:
    """One file: whether it is imported, what it lacks, what its baseline scored here, and what it should."""

    file: str
    task: str
    imported: bool
    data: str
    lacks: str = ""
    form: str = ""
    metric: str = ""
    stated: float | None = None
    baseline: float | None = None
    note: str = ""

    @property
    def runs(self) -> bool:
        """Whether everything is there that it needs."""
        return self.imported and not self.lacks

    def as_data(self) -> dict[str, Any]:
        """The same for `--json`."""
        return {**asdict(self), "runs": self.runs}


def task_files(place: str) -> list[Path]:
    """The task files of a checkout, of a folder, or the one file that was named."""
    path = Path(place)
    if path.is_file():
        return [path]
    folder = path / TASKS if (path / TASKS).is_dir() else path
    found = sorted(folder.glob("*.yaml"))
    if not found:
        raise UsageError("there are no task files here", place=place, remedy=f"CHECKOUT, with {TASKS}/NAME.yaml in it")
    return found


def surveyed(files: list[Path], data: str | None, baselines: bool) -> Iterator[Row]:
    """What becomes of each file; `baselines` runs those that can be run."""
    for file in files:
        yield _dataset(file, data) if file.parent.name == "datasets" else _task(file, data, baselines)


def _dataset(file: Path, data: str | None) -> Row:
    try:
        sheet, found = read_dataset(str(file), data)
    except OperantError as problem:
        return Row(file.name, "", False, "", str(problem).partition("\n")[0])
    if isinstance(found, Found):
        return Row(file.name, sheet.name, True, found.source, form="dataset", note=found.mark)
    return Row(file.name, sheet.name, True, "", found.cause, "dataset")


def _task(file: Path, data: str | None, baselines: bool) -> Row:
    from operant.envs.research.mlgym.task import Imported

    try:
        task = ResearchTask(f"mlgym:{file}", data=data)
    except OperantError as problem:
        return Row(file.name, "", False, "", str(problem).partition("\n")[0])
    source = task.folder
    assert isinstance(source, Imported), "mlgym: was said"
    described = source.task
    row = Row(
        file=file.name,
        task=task.name,
        imported=True,
        data=source.sources,
        lacks="; ".join(source.lacking),
        form=source.submission.form,
        metric=described.metric.name,
        stated=described.baseline,
    )
    return _with_baseline(row, task) if baselines and row.runs else row


def _with_baseline(row: Row, task: ResearchTask) -> Row:
    agent = task.agents().get("baseline")
    if agent is None:
        return Row(**{**asdict(row), "note": "it has no baseline program"})
    try:
        verdict = play_script(task, task.problems("eval")[0], agent, 0).verdict
    except OperantError as problem:
        return Row(**{**asdict(row), "note": problem.cause})
    scored = verdict is not None and verdict.score is not None and not verdict.note
    note = "" if verdict is None else verdict.note
    return Row(**{**asdict(row), "baseline": verdict.parts["hidden"] if verdict and scored else None, "note": note})
