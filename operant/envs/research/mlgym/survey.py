"""What becomes of all task files of a checkout: which are imported, which run, what their baselines score."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from operant.envs.research.mlgym.datasets import Found, read_dataset
from operant.envs.research.mlgym.sheets import CONFIGS
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Played, play_script
from operant.errors import OperantError, UsageError

ENDED = re.compile(r"^\[((?:exit|ended|killed)\b.*)\]$")
OF_SANDBOX = re.compile(r"^\[turn ")
TASKS, DATASETS = f"{CONFIGS}/tasks", f"{CONFIGS}/datasets"


@dataclass(frozen=True)
class Row:
    """One file: whether it is imported, what it lacks, what its baseline scored here, and what it should.

    The baseline `took` so many seconds with its evaluations.
    """

    file: str
    task: str
    imported: bool
    data: str
    lacks: str = ""
    form: str = ""
    metric: str = ""
    stated: float | None = None
    baseline: float | None = None
    took: float | None = None
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


def surveyed(
    files: list[Path], data: str | None, seconds: float | None = None, tell: Callable[[str], object] = lambda line: None
) -> Iterator[Row]:
    """What becomes of each file.

    With `seconds` the baselines that can be run are, each of their programs for so long at most; `tell` hears of each
    of them as it begins and ends.
    """
    for number, file in enumerate(files, 1):
        if file.parent.name == "datasets":
            yield _dataset(file, data)
            continue
        row, task = _task(file, data)
        if task is None or seconds is None or not row.runs:
            yield row
            continue
        if "baseline" not in task.agents():
            yield replace(row, note="it has no baseline program")
            continue
        tell(f"{number} of {len(files)}  {row.file}: its baseline, at most {seconds:g} s for each program")
        row = _with_baseline(row, task, seconds)
        score = "no score" if row.baseline is None else f"{row.metric} {row.baseline:.6g}"
        tell(f"{number} of {len(files)}  {row.file}: {score} after {row.took or 0:.0f} s{row.note and f'; {row.note}'}")
        yield row


def _dataset(file: Path, data: str | None) -> Row:
    try:
        sheet, found = read_dataset(str(file), data)
    except OperantError as problem:
        return Row(file.name, "", False, "", str(problem).partition("\n")[0])
    if isinstance(found, Found):
        return Row(file.name, sheet.name, True, found.source, form="dataset", note=found.mark)
    return Row(file.name, sheet.name, True, "", found.cause, "dataset")


def _task(file: Path, data: str | None) -> tuple[Row, ResearchTask | None]:
    from operant.envs.research.mlgym.task import Imported

    try:
        task = ResearchTask(f"mlgym:{file}", data=data)
    except OperantError as problem:
        return Row(file.name, "", False, "", str(problem).partition("\n")[0]), None
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
    return row, task


def _with_baseline(row: Row, task: ResearchTask, seconds: float) -> Row:
    """The row with what the baseline scored here, or why it has no score; no failure of one stops the others."""
    task.folder.shorten(seconds)
    begun = time.monotonic()
    try:
        played = play_script(task, task.problems("eval")[0], task.agents()["baseline"], 0)
    except OperantError as problem:
        return replace(row, took=time.monotonic() - begun, note=problem.cause)
    except Exception as problem:  # whatever their programs and files can make of ours
        note = f"it failed: {type(problem).__name__}: {problem}"
        return replace(row, took=time.monotonic() - begun, note=note)
    verdict = played.verdict
    scored = verdict.score is not None and not verdict.note
    note = "" if scored else _how_it_ended(played) or verdict.note
    return replace(row, took=time.monotonic() - begun, baseline=verdict.parts["hidden"] if scored else None, note=note)


def _how_it_ended(played: Played) -> str:
    """How the baseline's own program ended where that was not well, with its last line; nothing where it did."""
    messages = [message.text for exchange in played.exchanges[:1] for message in exchange.response.messages]
    lines = [line for text in messages for line in text.splitlines() if line.strip() and not OF_SANDBOX.match(line)]
    ended = ENDED.match(lines[-1]) if lines else None
    if ended is None:
        return ""
    return f"its baseline program: {ended[1]}" + (f": {lines[-2].strip()}" if len(lines) > 1 else "")
