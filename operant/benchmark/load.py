"""From a name or a file to a suite, with errors that point at the line as those of specs do."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from operant.benchmark.suite import NAME_WORDS, Cell, CellSpec, Suite, SuiteSpec, cell_name, repeated_names
from operant.errors import OperantError, SpecError, UsageError
from operant.spec.errors import key_span, span_of, with_article, written_path
from operant.spec.field_types import field_type
from operant.spec.fields import Closed
from operant.spec.load import READERS
from operant.spec.reading.diagnostics import Diagnostic, nearest, report, shown
from operant.spec.reading.document import Document, KeyPath, Source
from operant.spec.reading.limits import MAX_BYTES

FOLDER = files("operant") / "benchmark" / "suites"
DESCRIPTION = re.compile(r"^description:\s*(.*)$", re.MULTILINE)
GUIDE = "operant bench quick --list"


def builtin_suites() -> dict[str, str]:
    """The suites that ship with Operant, each with its description, found without reading their cells."""
    found = {}
    for file in sorted(FOLDER.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".yaml"):
            about = DESCRIPTION.search(file.read_text(encoding="utf-8"))
            found[file.name.removesuffix(".yaml")] = about[1] if about else ""
    return found


def load_suite(target: str) -> Suite:
    """The suite that is named: a file (YAML, JSON, TOML), or one that ships with Operant.

    `SpecError` with the place of everything that is wrong with a file, `UsageError` where there is none.
    """
    path = Path(target)
    if path.is_file():
        return _suite(_read(path), path.stem, path.parent)
    if target in builtin_suites():
        text = (FOLDER / f"{target}.yaml").read_text(encoding="utf-8")
        document = READERS[".yaml"](Source(text, f"operant/benchmark/suites/{target}.yaml"))
        return _suite(document, target, None)
    raise _not_found(target)


def _read(path: Path) -> Document:
    if path.suffix.lower() not in READERS:
        raise UsageError(f"a suite file ends in {', '.join(READERS)}", place=str(path), remedy="rename the file")
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            cause = f"the file has {len(data):,} bytes, and a suite at most {MAX_BYTES:,}"
            raise UsageError(cause, place=str(path), remedy="is this the right file?")
        text = data.decode("utf-8-sig")
    except OSError as fault:
        cause = f"the file cannot be read: {fault.strerror}"
        raise UsageError(cause, place=str(path), remedy=f"ls -l {path}") from None
    except UnicodeDecodeError:
        raise UsageError("the file is not UTF-8 text", place=str(path), remedy="save it as UTF-8") from None
    return READERS[path.suffix.lower()](Source(text, str(path)))


def _not_found(target: str) -> UsageError:
    known = builtin_suites()
    near = nearest(target, known)
    if Path(target).is_dir():
        cause = "this is a folder; name a suite file in it"
    else:
        cause = "there is no such file" if Path(target).suffix else "no file and no built-in suite has this name"
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
    return UsageError(f"{cause}; {hint}", place=target, remedy=f"operant bench {near or 'quick'} --list")


def _suite(document: Document, stem: str, folder: Path | None) -> Suite:
    label = document.source.label
    if not isinstance(document.data, dict):
        holds = "nothing" if document.data is None else "a list" if isinstance(document.data, list) else "one value"
        cause = f"the file holds {holds}, not a suite; a suite has cells, each with a spec"
        raise SpecError(cause, place=label, remedy=GUIDE)
    try:
        spec = SuiteSpec.model_validate({"name": stem, **document.data})
    except ValidationError as fault:
        problems = [_diagnostic(detail, document) for detail in fault.errors(include_url=False)]
        raise report(problems, label) from None
    problems = [
        Diagnostic(f"two cells are called {name}", span_of(("cells", index), document), "give one a name of its own")
        for index, name in repeated_names(spec)
    ]
    if not spec.cells:
        problems = [Diagnostic("cells is empty", span_of(("cells",), document), "a cell is {spec: ppo_cartpole}")]
    if problems:
        raise report(problems, label)
    cells = tuple(_cell(spec, index, document, folder) for index in range(len(spec.cells)))
    return Suite(spec.name, spec.title or spec.name, spec.description, spec.seeds, cells)


def _cell(suite: SuiteSpec, index: int, document: Document, folder: Path | None) -> Cell:
    given = suite.cells[index]
    at = span_of(("cells", index, "spec"), document)
    return Cell(
        name=cell_name(given),
        spec=_beside(given.spec, folder),
        settings=given.set,
        frames=given.frames,
        column=given.column,
        published=given.published,
        measure=given.measure or suite.measure,
        source=suite.source if given.source is None else given.source,
        window=suite.window,
        place=at.place if at is not None else str(document.source.label),
    )


def _beside(spec: str, folder: Path | None) -> str:
    """A file that lies beside the suite, whatever folder the command is typed in; anything else as it is."""
    if folder is None:
        return spec
    file, colon, inner = spec.rpartition(":")
    for path, rest in ((spec, ""), (file, colon + inner)):
        if path and (folder / path).is_file():
            return f"{folder / path}{rest}"
    return spec


def in_cell(cell: Cell, error: OperantError) -> UsageError:
    """What is wrong with a cell's spec or its settings, told at the cell's place in the suite."""
    cause = f"cell {cell.name}: {str(error).partition(chr(10) + '  try: ')[0]}"
    return SpecError(cause, place=cell.place, remedy=error.remedy)


def _diagnostic(detail: ErrorDetails, document: Document) -> Diagnostic:
    """One finding of pydantic, at the place where it was written."""
    path = written_path(detail["loc"], document.data)
    owner = CellSpec if path[:1] == ("cells",) and len(path) > 2 else SuiteSpec
    words = ".".join(map(str, path))
    key = words.rpartition(".")[2]
    if detail["type"] == "extra_forbidden":
        near = nearest(key, owner.model_fields)
        hint = f"did you mean {near}?" if near else f"it has {', '.join(owner.model_fields)}"
        kind = "a cell" if owner is CellSpec else "a suite"
        return Diagnostic(f"{words} is not a setting of {kind}", key_span(path, document), hint)
    if detail["type"] == "missing":
        return Diagnostic(f"{words} is missing", span_of(path, document), _about(owner, key))
    return Diagnostic(*_wrong_value(words, owner, key, detail, path, document))


def _wrong_value(
    words: str, owner: type[Closed], key: str, detail: ErrorDetails, path: KeyPath, document: Document
) -> tuple[str, Any, str]:
    """Cause, place and hint for a value of another type or outside its range."""
    value, at = detail["input"], span_of(path, document)
    if key not in owner.model_fields:
        return (
            f"{words} = {shown(value)} is not a cell",
            at,
            "a cell is a mapping: {spec: ppo_cartpole, frames: 50_000}",
        )
    accepted = field_type(owner.model_fields[key])
    if accepted.choices:
        near = nearest(str(value), accepted.choices)
        hint = f"did you mean {near}?" if near else ""
        return f"{words} = {shown(value)} is not one of {', '.join(accepted.choices)}", at, hint
    if detail["type"] == "string_pattern_mismatch":
        return f"{words} = {shown(value)} has characters that do not belong", at, NAME_WORDS
    if detail["type"].endswith("_type"):
        return f"{words} = {shown(value)} is not {with_article(accepted.type)}", at, _about(owner, key)
    reach = f"must be {accepted.range}" if accepted.range else _about(owner, key)
    return f"{words} = {shown(value)} is out of range", at, reach


def _about(owner: type[Closed], key: str) -> str:
    field = owner.model_fields.get(key)
    return (field.description or "").rstrip(".") if field is not None else ""
