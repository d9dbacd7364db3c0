"""A task's folder: task.yaml, the files that an agent sees, those that only the grader sees, and the grader.

task.yaml   visible/   hidden/   grader.py: grade(work), files(data, seed) if needed   agents.py: AGENTS
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from operant.envs.research.catalogue import FILE, folder_of
from operant.envs.research.grading import Work
from operant.envs.research.packages import Packages, packages
from operant.envs.research.schema import TaskFile
from operant.envs.research.source import Source
from operant.envs.text.dialogue import Scripted
from operant.envs.text.sources import find_file
from operant.errors import UsageError
from operant.spec.reading.diagnostics import Diagnostic, nearest, report
from operant.spec.reading.document import Document, KeyPath
from operant.spec.reading.document import Source as Text
from operant.spec.reading.yaml import read_yaml

DATA_REFERENCE = "data:"


class Folder(Source):
    """A task as its folder describes it (final); grader and agents are loaded when they are first asked for."""

    def __init__(self, path: Path, task: TaskFile) -> None:
        self.path = path
        self.task = task

    @property
    def hidden(self) -> Path:
        """The files that never enter the agent's sandbox."""
        return self.path / "hidden"

    @cached_property
    def packages(self) -> Packages:
        """What programs in a sandbox of this task may import."""
        return packages(self.task.packages)

    @cached_property
    def grader(self) -> Callable[[Work], float]:
        """The function of grader.py."""
        return _attribute(self._part("grader"), "grade", "def grade(work: Work) -> float")

    def grade(self, work: Work) -> float:
        """What the grader says."""
        return self.grader(work)

    @cached_property
    def agents(self) -> Mapping[str, Scripted]:
        """The scripted agents by name; none where there is no agents.py."""
        if not (self.path / "agents.py").is_file():
            return {}
        found = _attribute(self._part("agents"), "AGENTS", "AGENTS: tuple[Scripted, ...]")
        return {agent.name: agent for agent in found}

    def data(self, root: str | None) -> dict[str, Path]:
        """The data files by their names; `UsageError` for one that is not there."""
        return {name: find_file(self.task.name, *_divided(place), root) for name, place in self.task.data.items()}

    def files(self, data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
        """What the workspace holds at the start of the problem `seed`."""
        made = getattr(self._part("grader"), "files", None)
        return {**self._visible(data), **(made(data, seed) if made else {})}

    def _visible(self, data: Mapping[str, Path]) -> dict[str, bytes]:
        root = self.path / "visible"
        everything = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file()]
        wanted = everything if self.task.visible is None else self.task.visible
        found: dict[str, bytes] = {}
        for name in wanted:
            is_data = name.startswith(DATA_REFERENCE)
            name = name.removeprefix(DATA_REFERENCE)
            place = data[name] if is_data else root / name
            found[name] = place.read_bytes()
        return found

    def _part(self, name: str) -> ModuleType:
        """A Python file of the folder. The folder is a package, so that its files may import each other by a dot."""
        package = f"operant_task_{blake2b(str(self.path).encode(), digest_size=8).hexdigest()}"
        if package not in sys.modules:
            parent = ModuleType(package)
            parent.__path__ = [str(self.path)]
            sys.modules[package] = parent
        try:
            return import_module(f"{package}.{name}")
        except Exception as problem:
            raise UsageError(
                f"cannot be loaded: {type(problem).__name__}: {problem}", place=str(self.path / f"{name}.py")
            ) from problem


def load_folder(name: str) -> Folder:
    """The task of that name or path; everything that is wrong with its task.yaml is said at once, with its line."""
    folder = folder_of(name).resolve()
    file = folder / FILE
    if not file.is_file():
        raise UsageError(
            f"there is no {FILE} in this folder", place=str(folder), remedy="operant tasks    (lists them)"
        )
    document = read_yaml(Text(file.read_text(encoding="utf-8"), str(file)))
    try:
        task = TaskFile.model_validate(document.data if isinstance(document.data, dict) else {})
    except ValidationError as fault:
        found = [_problem(detail, document) for detail in fault.errors(include_url=False)]
        raise report(found, str(file)) from None
    _refuse_missing_files(folder, task, document)
    return Folder(folder, task)


def _problem(detail: ErrorDetails, document: Document) -> Diagnostic:
    path = cast(KeyPath, detail["loc"])
    mark = document.mark_of(path)
    at = None if mark is None else mark[1].key or mark[1].value
    name = ".".join(map(str, path))
    if detail["type"] == "extra_forbidden":
        near = nearest(str(path[-1]), TaskFile.model_fields)
        return Diagnostic(f"there is no setting {name}", at, f"did you mean {near}?" if near else "leave it out")
    if detail["type"] == "missing":
        return Diagnostic(f"{name} is missing", at, remedy=f"add a line to {FILE}: {path[-1]}: ...")
    return Diagnostic(f"{name or FILE}: {detail['msg'].removeprefix('Value error, ')}", at)


def _refuse_missing_files(folder: Path, task: TaskFile, document: Document) -> None:
    problems = []
    for index, name in enumerate(task.visible or ()):
        reference = name.removeprefix(DATA_REFERENCE)
        there = reference in task.data if reference != name else (folder / "visible" / name).is_file()
        if not there:
            mark = document.mark_of(("visible", index))
            problems.append(Diagnostic(f"visible: there is no {name}", mark[1].value if mark else None))
    if not (folder / "grader.py").is_file():
        problems.append(Diagnostic("there is no grader.py beside this file", None, "def grade(work: Work) -> float"))
    if problems:
        raise report(problems, document.source.label)


def _attribute(module: ModuleType, name: str, form: str) -> Any:
    if not hasattr(module, name):
        raise UsageError(f"it has no {name}", place=module.__file__, remedy=form)
    return getattr(module, name)


def _divided(place: str) -> tuple[str, str]:
    folder, _, file = place.rpartition("/")
    return folder, file
