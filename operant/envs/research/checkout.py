"""The files of an MLGym checkout: a task's YAML, those of its datasets, and what they name.

Only the form of these files is known here; a checkout is the reader's own, and nothing of it is copied or shipped.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from operant.errors import UsageError
from operant.spec.reading.document import Source as Text
from operant.spec.reading.yaml import read_yaml

CONFIGS = "configs"
DATA = "data"
LABEL_WORDS = ("ground_truth", "answer", "label", "solution", "target_values")
OPPONENT_WORDS = ("target", "opponent", "adversary")


class TaskSheet(BaseModel):
    """What is read of a task's YAML; their files hold more, which decides nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    name: str
    description: str
    task_entrypoint: str = "CSVSubmissionTasks"
    dataset_configs: tuple[str, ...] = ()
    training_timeout: float | None = None
    starter_code: tuple[str, ...] = ()
    baseline_scores: tuple[dict[str, float], ...] = ()
    sample_submission: str | None = None
    evaluation_paths: tuple[str, ...] = ()


class DataSheet(BaseModel):
    """What is read of a dataset's YAML."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    description: str = ""
    data_path: str
    is_local: bool = False


@dataclass(frozen=True)
class Checkout:
    """A task with all its files, by their paths in the workspace, as bytes."""

    file: Path
    sheet: TaskSheet
    datasets: tuple[DataSheet, ...]
    starter: dict[str, bytes]
    data: dict[str, bytes]
    sample: bytes | None
    missing: tuple[str, ...]

    @property
    def evaluator(self) -> str:
        """The script that scores, by its path in the workspace."""
        return self.sheet.evaluation_paths[0]

    @cached_property
    def labels(self) -> dict[str, bytes]:
        """Files that the evaluator reads and nobody else should: named like labels, or named by it alone."""
        everything = {**self.starter, **self.data}
        read = _texts(everything.get(self.evaluator, b""))
        programs = [text for name, text in everything.items() if name.endswith(".py") and name != self.evaluator]
        others = {self.sheet.description}.union(*map(_texts, programs))
        return {name: data for name, data in everything.items() if _is_label(name, read, others)}

    @property
    def opponents(self) -> dict[str, bytes]:
        """Programs of the other side: the agent may read them, and what it makes of them is not used."""
        return {name: text for name, text in self.starter.items() if _is_opponent(name)}

    @property
    def imports(self) -> set[str]:
        """Packages that the starter code imports, which are neither Python's nor its own."""
        found: set[str] = set()
        for name, text in self.starter.items():
            if name.endswith(".py"):
                found |= _imports(text)
        own = {Path(name).stem for name in self.starter} | {Path(name).parts[0] for name in self.starter}
        return found - own - sys.stdlib_module_names


def read_checkout(file: str) -> Checkout:
    """The task of a YAML file below `configs/tasks` of a checkout, with the files that are there."""
    path = Path(file).resolve()
    if not path.is_file():
        raise UsageError("there is no such file", place=file, remedy="mlgym:CHECKOUT/configs/tasks/NAME.yaml")
    root = next((parent.parent for parent in path.parents if parent.name == CONFIGS), None)
    if root is None:
        raise UsageError("this file lies in no checkout: no folder above it is called configs", place=file)
    sheet = _sheet(TaskSheet, path)
    if not sheet.evaluation_paths:
        raise UsageError("it names no evaluation_paths, so that nothing can be scored", place=file)
    missing: list[str] = []
    datasets = [
        _sheet(DataSheet, place) for name in sheet.dataset_configs if (place := _there(root / CONFIGS, name, missing))
    ]
    starter = _gathered(root, sheet.starter_code, missing)
    data: dict[str, bytes] = {}
    for dataset in datasets:
        data |= _data(root, dataset, missing)
    sample = root / sheet.sample_submission if sheet.sample_submission else None
    if sheet.evaluation_paths[0] not in starter:
        missing.append(f"its evaluator {sheet.evaluation_paths[0]} is not in starter_code")
    content = sample.read_bytes() if sample and sample.is_file() else None
    return Checkout(path, sheet, tuple(datasets), starter, data, content, tuple(missing))


def _sheet(kind: type[Any], path: Path) -> Any:
    document = read_yaml(Text(path.read_text(encoding="utf-8"), str(path)))
    try:
        return kind.model_validate(document.data)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg']}", place=str(path)) from None


def _there(folder: Path, name: str, missing: list[str]) -> Path | None:
    place = folder / name
    if place.is_file():
        return place
    missing.append(f"{CONFIGS}/{name} is not there")
    return None


def _gathered(root: Path, names: tuple[str, ...], missing: list[str]) -> dict[str, bytes]:
    """Files go to the top of the workspace, folders with all that is in them."""
    found: dict[str, bytes] = {}
    for name in names:
        place = root / name
        if place.is_file():
            found[place.name] = place.read_bytes()
        elif place.is_dir():
            found |= {f"{place.name}/{inner}": data for inner, data in _files(place).items()}
        else:
            missing.append(f"{name} is not there")
    return found


def _data(root: Path, dataset: DataSheet, missing: list[str]) -> dict[str, bytes]:
    place = root / dataset.data_path
    if not dataset.is_local:
        missing.append(f"the dataset {dataset.name} is fetched from {dataset.data_path}, which is not done here")
    elif not place.is_dir():
        missing.append(f"the data of {dataset.name} is not in {dataset.data_path}")
    else:
        return {f"{DATA}/{name}": content for name, content in _files(place).items()}
    return {}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _is_label(name: str, read: set[str], others: set[str]) -> bool:
    if name.endswith(".py"):
        return False
    stem = Path(name).stem.lower()
    called_so = "train" not in stem and any(word in stem for word in LABEL_WORDS)
    return called_so or (_named(name, read) and not _named(name, others))


def _is_opponent(name: str) -> bool:
    return name.endswith(".py") and any(word in Path(name).stem.lower() for word in OPPONENT_WORDS)


def _named(name: str, texts: set[str]) -> bool:
    return any(Path(name).name in text for text in texts)


def _texts(source: bytes) -> set[str]:
    """The texts that stand in a program."""
    tree = _tree(source)
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def _imports(source: bytes) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _tree(source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])
