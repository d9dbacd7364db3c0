"""The two kinds of YAML in a checkout: a task's and a dataset's, read with the place of everything that is wrong.

Only the form of these files is known here; a checkout is the reader's own, and nothing of it is copied or shipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails

from operant.errors import UsageError
from operant.spec.reading.diagnostics import Diagnostic, report
from operant.spec.reading.document import Document, KeyPath
from operant.spec.reading.document import Source as Text
from operant.spec.reading.yaml import read_yaml

CONFIGS = "configs"


def _below(path: str) -> str:
    """A path that stays below the checkout, without a folder's slash."""
    parts = path.rstrip("/").split("/")
    if not path or path.startswith("/") or "\0" in path or ".." in parts:
        raise ValueError("must be a path below the checkout, such as data/titanic/data")
    return path.rstrip("/")


def _none_is_empty(value: object) -> object:
    return () if value is None else value


Below = Annotated[str, AfterValidator(_below)]
Paths = Annotated[tuple[Below, ...], BeforeValidator(_none_is_empty)]
Score = Annotated[float, Field(allow_inf_nan=False)]


class Sheet(BaseModel):
    """What is read of a file (abstract); keys that their program drops are dropped here too."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    _document: Document | None = PrivateAttr(default=None)

    def place(self, *path: str | int) -> str:
        """Where a setting stands in its file, or else the file's beginning."""
        assert self._document is not None, "it was read from a file"
        mark = self._document.mark_of(path)
        return mark[1].value.place if mark else f"{self._document.source.label}:1:1"


class TaskSheet(Sheet):
    """A task's file."""

    id: str = Field(min_length=1)
    name: str
    description: str
    task_entrypoint: str = "CSVSubmissionTasks"
    dataset_configs: Paths = ()
    training_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    use_generic_conda: bool = True
    starter_code: Paths = ()
    baseline_paths: Paths = ()
    baseline_scores: Annotated[tuple[dict[str, Score], ...], BeforeValidator(_none_is_empty)] = ()
    sample_submission: Below | None = None
    evaluation_paths: Paths = ()


class DataSheet(Sheet):
    """A dataset's file."""

    name: str
    description: str = ""
    data_path: Below
    is_local: bool = False


Kind = TypeVar("Kind", bound=Sheet)


def read_sheet(kind: type[Kind], path: Path) -> Kind:
    """The sheet of a file; all that is wrong with it is said at once, with its line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot be read: {problem}", place=str(path)) from None
    document = read_yaml(Text(text, str(path)))
    if not isinstance(document.data, dict):
        raise UsageError("it holds no settings", place=f"{path}:1:1", remedy="id: NAME, and so on")
    try:
        sheet = kind.model_validate(document.data)
    except ValidationError as fault:
        raise report([_problem(each, document) for each in fault.errors(include_url=False)], f"{path}:1:1") from None
    sheet._document = document
    return sheet


def checkout_of(file: str) -> Path:
    """The checkout that a file of its `configs` lies in."""
    path = Path(file).resolve()
    if not path.is_file():
        raise UsageError("there is no such file", place=file, remedy="mlgym:CHECKOUT/configs/tasks/NAME.yaml")
    root = next((parent.parent for parent in path.parents if parent.name == CONFIGS), None)
    if root is None:
        raise UsageError("this file lies in no checkout: no folder above it is called configs", place=file)
    return root


def _problem(detail: ErrorDetails, document: Document) -> Diagnostic:
    path = cast(KeyPath, detail["loc"])
    name = ".".join(map(str, path))
    mark: Any = document.mark_of(path)
    if detail["type"] == "missing":
        return Diagnostic(f"{name} is missing", None, remedy=f"add a line: {name}: ...")
    said = detail["msg"].removeprefix("Value error, ")
    return Diagnostic(f"{name}: {said}", mark[1].value if mark else None)
