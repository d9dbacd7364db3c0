"""From what a person typed to a spec: find the file, read it, apply `-s`, check everything.

A file (YAML 1.2, JSON or TOML) holds one spec, or several under their names. In a file of
several, a name that starts with `_` is no spec but a place for YAML anchors to live. A spec
without a `name` is called after its file. A spec in another lab's shape is translated first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from operant.errors import SpecError, UsageError
from operant.spec.builtin import SECTION_NAMES, builtin_names, builtin_source
from operant.spec.dialects import prime_rl, rlvr
from operant.spec.dialects.conversion import Remark
from operant.spec.dialects.explain import Explained, explain
from operant.spec.dialects.registry import Lab, lab_of
from operant.spec.dialects.slm.convert import holds_slm, without_last_commas
from operant.spec.errors import span_of, spec_error
from operant.spec.overrides import apply, fill
from operant.spec.reading.diagnostics import Diagnostic, cut, listed, nearest, report, shown
from operant.spec.reading.document import Document, Mark, Reader, Source
from operant.spec.reading.json import read_json
from operant.spec.reading.limits import MAX_BYTES
from operant.spec.reading.toml import read_toml
from operant.spec.reading.yaml import read_yaml
from operant.spec.schema import Spec
from operant.spec.space import search_diagnostics

READERS: dict[str, Reader] = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json, ".toml": read_toml}
EDITOR_KEY = "$schema"
REMEDY = "operant help spec"


@dataclass(frozen=True)
class Loaded:
    """A spec and where it came from; `source` is the text of the file, word for word.

    `lab` says whose dialect it was in, such as "an SLM-Lab spec", and is empty for a native one. `written` is what a
    translated spec is in the native form, before defaults, and `remarks` say what was changed or left out.
    """

    spec: Spec
    source: str
    suffix: str
    path: Path | None
    builtin: bool
    lab: str = ""
    remarks: tuple[Remark, ...] = ()
    written: dict[str, Any] = field(default_factory=dict)

    @property
    def translated(self) -> bool:
        """Whether it was another lab's."""
        return bool(self.lab)


@dataclass(frozen=True)
class Explanation:
    """A spec of another lab, setting by setting; `fault` is why it is refused, and empty where it is not."""

    name: str
    lab: str
    settings: list[Explained]
    fault: str = ""


@dataclass(frozen=True)
class _Origin:
    """A text to read specs from; `path` is None for one that ships with Operant."""

    source: Source
    suffix: str
    stem: str
    path: Path | None

    def documents(self) -> dict[str, Document]:
        document = _read(self.source, self.suffix)
        if self.path is not None and prime_rl.program_of(document.data) is not None:
            document = prime_rl.joined(document, _beside(self.path))
        return _split(document, _as_name(self.stem))

    def loaded(self, name: str, document: Document, overrides: Sequence[str] = (), lossy: bool = False) -> Loaded:
        document = _named(document, name)
        lab, remarks = lab_of(document.data), ()
        if lab is not None:
            document, overrides = _filled(lab, document, overrides)
            converted = lab.convert(document, lossy, overrides)
            document, remarks, overrides = converted.document, converted.remarks, converted.overrides
        document = apply(document, overrides)
        spec = _built(document)
        title = lab.title if lab is not None else ""
        return Loaded(spec, self.source.text, self.suffix, self.path, self.path is None, title, remarks, document.data)

    def explained(self, name: str, document: Document, overrides: Sequence[str]) -> Explanation:
        """What becomes of each setting, whether or not the spec as a whole is refused."""
        document = _named(document, name)
        lab = lab_of(document.data)
        if lab is None:
            cause = f"nothing to explain: {cut(name)} is native already"
            raise UsageError(cause, place=self.source.label, remedy=f"operant check {self.source.label}")
        filled, rest = _filled(lab, document, overrides)
        conversion, _ = lab.convert.converted(filled, rest)
        fault = ""
        try:
            self.loaded(name, document, overrides)
        except SpecError as refused:
            fault = str(refused)
        return Explanation(name, lab.title, explain(conversion), fault)


def load(target: str, name: str | None = None, overrides: Sequence[str] = (), lossy: bool = False) -> Loaded:
    """The spec that `target` names: FILE, FILE:NAME, or a spec that ships with Operant.

    `lossy` accepts settings of another lab that have no counterpart, as remarks. Raises SpecError with the place of
    everything that is wrong, or UsageError when there is no such file or name.
    """
    origin, name = _find(target, name)
    documents = origin.documents()
    name = _pick(list(documents), name, target if origin.path is None else str(origin.path))
    return origin.loaded(name, documents[name], overrides, lossy)


def load_mapping(data: Mapping[str, Any], name: str | None = None, overrides: Sequence[str] = ()) -> Loaded:
    """The spec that a mapping holds, as if it were the content of a JSON file."""
    origin = _Origin(Source(json.dumps(data, indent=2, default=str), "the given spec"), ".json", "spec", None)
    documents = origin.documents()
    chosen = _pick(list(documents), name, "the given spec")
    return replace(origin.loaded(chosen, documents[chosen], overrides), builtin=False)


def load_all(target: str, name: str | None, overrides: Sequence[str] = (), lossy: bool = False) -> list[Loaded]:
    """As `load`, but all specs of a file when no name is given."""
    origin, name = _find(target, name)
    documents = origin.documents()
    chosen = list(documents) if name is None else [_pick(list(documents), name, target)]
    return [origin.loaded(each, documents[each], overrides, lossy) for each in chosen]


def explain_all(target: str, name: str | None, overrides: Sequence[str] = ()) -> list[Explanation]:
    """What becomes of each setting of another lab's file, spec by spec; of one spec where it is named."""
    origin, name = _find(target, name)
    documents = origin.documents()
    chosen = list(documents) if name is None else [_pick(list(documents), name, target)]
    return [origin.explained(each, documents[each], overrides) for each in chosen]


def documents_of(path: str | Path) -> dict[str, Document]:
    """The specs of a file as they are written, by name, none of them judged."""
    return _open(Path(path)).documents()


def _find(target: str, name: str | None) -> tuple[_Origin, str | None]:
    """Where the target is, and the name of the spec inside when the target or the caller gives one."""
    file, colon, inner = target.rpartition(":")
    if not target.strip():
        raise UsageError("no spec is named", remedy="operant specs")
    if Path(target).is_file():
        return _open(Path(target)), name
    if colon and Path(file).is_file():
        return _open(Path(file)), _one_name(name, inner)
    shipped = builtin_source(target)
    if shipped is None:
        raise _not_found(file if colon else target)
    source, stem = shipped
    return _Origin(source, ".yaml", stem, None), name or (None if target == stem else target)


def _one_name(outer: str | None, inner: str) -> str:
    if outer is not None and outer != inner:
        raise UsageError(f"two specs are named, {inner} and {outer}", remedy="name one of them")
    return inner


def _open(path: Path) -> _Origin:
    """Read a spec file; UsageError when it cannot be read as text of a known kind."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise UsageError(f"a spec file ends in {', '.join(READERS)}", place=str(path), remedy="rename the file")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _too_long(path)
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise _not_found(str(path)) from None
    except OSError as fault:
        cause = f"the file cannot be read: {fault.strerror}"
        raise UsageError(cause, place=str(path), remedy=f"ls -l {path}") from None
    except UnicodeDecodeError as fault:
        cause = f"the file is not UTF-8 text: byte {fault.start + 1} is {hex(fault.object[fault.start])}"
        raise UsageError(cause, place=str(path), remedy="save it as UTF-8") from None
    return _Origin(Source(text, str(path)), suffix, path.stem, path)


def _too_long(path: Path) -> UsageError:
    cause = f"the file has {path.stat().st_size:,} bytes, and a spec at most {MAX_BYTES:,}"
    return UsageError(cause, place=str(path), remedy="is this the right file? A spec is a page of settings")


def _not_found(target: str) -> UsageError:
    path = Path(target)
    if path.is_dir():
        return UsageError("this is a folder; name a spec file in it", place=target, remedy=f"ls {target}")
    shipped = [name for name, _, _ in builtin_names()]
    found = nearest(target, [*shipped, *_spec_files(path.parent)]) or nearest(path.stem, shipped)
    cause = "there is no such file" if path.suffix else "no file and no built-in spec has this name"
    if found is None:
        return UsageError(cause, place=target, remedy="operant specs")
    return UsageError(f"{cause}; did you mean {found}?", place=target, remedy=f"operant check {found}")


def _read(source: Source, suffix: str) -> Document:
    """The document of a text; one of SLM-Lab's may have commas that JSON would not, one of rlvr's a key twice."""
    try:
        return READERS[suffix](source)
    except SpecError:
        if READERS[suffix] is read_yaml:
            with suppress(SpecError):
                document = read_yaml(source, last_wins=True)
                if rlvr.recognises(document.data):
                    return document
        forgiven = without_last_commas(source)
        if suffix != ".json" or forgiven == source:
            raise
        with suppress(SpecError):
            document = read_json(forgiven)
            if holds_slm(document.data):
                return document
        raise


def _filled(lab: Lab, document: Document, overrides: Sequence[str]) -> tuple[Document, list[str]]:
    """The file with its placeholders filled, by -s and, in a lab's files that mean it so, from the environment."""
    if lab.variables:
        document = prime_rl.from_environment(document, [text.partition("=")[0] for text in overrides])
    return fill(document, overrides)


def _beside(path: Path) -> list[Document]:
    """The files of the same kind in the same folder that can be read."""
    found: list[Document] = []
    for each in sorted(path.parent.glob(f"*{path.suffix}")):
        with suppress(SpecError, UsageError):
            if each != path:
                found.append(_read(_open(each).source, path.suffix.lower()))
    return found


def _spec_files(folder: Path) -> list[str]:
    try:
        return [str(each) for each in folder.iterdir() if each.suffix in READERS]
    except OSError:
        return []


def _split(document: Document, stem: str) -> dict[str, Document]:
    """The specs of a document, by name."""
    data, label = document.data, document.source.label
    if data is None:
        raise SpecError("the file is empty", place=label, remedy=REMEDY)
    if not isinstance(data, dict):
        hint = "write key: value, with a space" if isinstance(data, str) and ":" in data else ""
        holds = "a list" if isinstance(data, list) else "a single value"
        cause = f"the file holds {holds}, not a spec or named specs"
        raise report([Diagnostic(cause, document.marks[()].value, hint, REMEDY)])
    body = {key: value for key, value in data.items() if key != EDITOR_KEY}
    lab = lab_of(body)
    if lab is not None and lab.name_path:
        return {_as_name(lab.name_in(body) or stem): replace(document, data=body)}
    if _is_one_spec(body):
        return {str(body.get("name", stem)): replace(document, data=body)}
    specs = {key: part for key, part in replace(document, data=body).parts().items() if not key.startswith("_")}
    if not specs:
        raise SpecError("the file holds no spec", place=label, remedy=REMEDY)
    return specs


def _is_one_spec(body: dict[str, Any]) -> bool:
    """Whether the top keys are sections, perhaps misspelt, rather than names of specs."""
    if any(key in SECTION_NAMES for key in body):
        return True
    named = {key: value for key, value in body.items() if not key.startswith("_")}
    return any(nearest(key, SECTION_NAMES) and not _has_sections(value) for key, value in named.items())


def _has_sections(value: Any) -> bool:
    return isinstance(value, dict) and any(key in SECTION_NAMES for key in value if key != "name")


def _named(document: Document, name: str) -> Document:
    """The document with `name` filled in where it says none; SpecError when it is no mapping or says another."""
    root = document.marks.get(())
    at = (root.key or root.value) if root else None
    if not isinstance(document.data, dict):
        cause = f"{cut(name)} = {shown(document.data)} is not a spec"
        raise report([Diagnostic(cause, at, "a spec has the sections env, agent, meta", REMEDY)])
    said = document.data.get("name", name)
    if str(said) != name:
        cause = f"name = {shown(said)} differs from {cut(name)}, which the spec is filed under"
        raise report([Diagnostic(cause, span_of(("name",), document), "leave it out")], document.source.label)
    marks = document.marks if at is None else {("name",): Mark(at), **document.marks}
    return replace(document, data={"name": name, **document.data}, marks=marks)


def _as_name(stem: str) -> str:
    """A file's stem with what a name may not hold replaced by dashes."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-._") or "unnamed"


def _pick(names: list[str], name: str | None, file: str) -> str:
    """Which of a file's specs is meant."""
    if name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        cause = f"the file holds {len(names)} specs: {listed(names)}"
        raise UsageError(cause, place=file, remedy=f"operant check {file} {cut(names[0])}")
    found = nearest(name, names)
    hint = f"did you mean {found}?" if found else f"it holds {listed(names)}"
    raise UsageError(
        f"no spec is called {cut(name)}; {hint}", place=file, remedy=f"operant check {file} {cut(found or names[0])}"
    )


def _built(document: Document) -> Spec:
    try:
        spec = Spec.model_validate(document.data)
    except ValidationError as fault:
        raise spec_error(fault, document) from None
    problems = search_diagnostics(document)
    if problems:
        raise report(problems, document.source.label)
    return spec
