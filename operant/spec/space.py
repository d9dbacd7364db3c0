"""The search space: which settings to vary, and how.

Two spellings of each dimension, under `search:`, by dotted path or nested:

    agent.net.optimizer.lr__loguniform: [1e-4, 1e-3]
    agent.net.optimizer.lr: {dist: loguniform, low: 1e-4, high: 1e-3}

Settings that vary together are one dimension, a choice of lists that have a value for each of them:

    agent.algorithm.lam, agent.algorithm.gamma__choice: [[0.9, 0.99], [0.95, 0.999]]

A space is checked when its spec is loaded: each path must be a setting, each value that can be
drawn must be valid there, and some draw of all dimensions together must fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pydantic import ValidationError

from operant.spec.distributions import ALIASES, PARAMETERS, Distribution, fault_in
from operant.spec.errors import diagnostics_in, dotted, is_only_conflict, key_span, unknown_setting
from operant.spec.fork import changes
from operant.spec.paths import find
from operant.spec.reading.diagnostics import Diagnostic, did_you_mean, nearest, report
from operant.spec.reading.document import Document, KeyPath, put
from operant.spec.schema import Spec

GRID_REMEDY = "choice, randint or a distribution with q; or meta.search_sampler: tpe"
TRIES = 200
MAX_DIMENSIONS = 200
REMEDY = "operant help search"
FIXED = ("name", "search")


@dataclass(frozen=True)
class Dimension:
    """One setting to vary; `at` is where the search section says so."""

    path: str
    distribution: Distribution
    at: KeyPath

    @property
    def paths(self) -> list[str]:
        """The settings that it varies, of which there may be several, separated by commas."""
        return together(self.path)


Space = tuple[Dimension, ...]


def parse(search: Mapping[str, Any] | None) -> Space:
    """The space that a spec's `search` section describes; SpecError when it cannot be read."""
    entries = list(_entries(search or {}))
    problems = [entry for entry in entries if isinstance(entry, _Fault)]
    if problems:
        raise report([Diagnostic(each.cause, None, each.hint, REMEDY) for each in problems])
    return tuple(entry for entry in entries if isinstance(entry, Dimension))


def sample(space: Space, rng: Random) -> dict[str, Any]:
    """One value for each dimension, by dotted path."""
    return {dimension.path: dimension.distribution.draw(rng) for dimension in space}


def apply(spec: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a spec's plain data with the values put at their dotted paths."""
    for paths, drawn in values.items():
        several = together(paths)
        for path, value in zip(several, drawn if len(several) > 1 else [drawn], strict=True):
            spec = put(spec, tuple(path.split(".")), value)
    return spec


def together(path: str) -> list[str]:
    """The dotted paths of settings that vary together."""
    return [each.strip() for each in path.split(",")]


@dataclass(frozen=True)
class _Fault:
    """An entry of the search section that cannot be read."""

    at: KeyPath
    cause: str
    hint: str = ""


def _entries(search: Mapping[str, Any], at: KeyPath = ()) -> Iterator[Dimension | _Fault]:
    """The dimensions of a search section, looking into nested sections."""
    for key, body in search.items():
        here = (*at, key)
        stem, _, suffix = str(key).partition("__")
        path = dotted((*at, stem))
        if suffix:
            yield _dimension(here, path, suffix, body if isinstance(body, list) else [body])
        elif isinstance(body, Mapping) and "dist" in body:
            yield _from_mapping(here, path, body)
        elif isinstance(body, Mapping) and (slip := _misspelt_dist(body)):
            yield _Fault((*here, slip), f"search.{path}.{slip} is not a setting", "did you mean dist?")
        elif isinstance(body, Mapping) and body:
            yield from _entries(body, here)
        else:
            yield _Fault(here, f"search.{path} names no distribution", f"write {path}__uniform: [low, high]")


def _misspelt_dist(body: Mapping[str, Any]) -> str | None:
    """The key that was meant to be `dist`, in a mapping that names parameters of a distribution."""
    parameters = {name for names in PARAMETERS.values() for name in names}
    strange = [str(key) for key in body if key not in parameters]
    return strange[0] if len(strange) == 1 < len(body) and nearest(strange[0], ["dist"]) else None


def _from_mapping(at: KeyPath, path: str, body: Mapping[str, Any]) -> Dimension | _Fault:
    kind = str(body["dist"])
    names = PARAMETERS.get(ALIASES.get(kind, kind))
    if names is None:
        return _dimension((*at, "dist"), path, kind, [])
    unknown = [key for key in body if key not in ("dist", *names)]
    missing = [name for name in names if name not in body]
    if unknown:
        hint = did_you_mean(unknown[0], names) or f"it takes {', '.join(names)}"
        return _Fault((*at, unknown[0]), f"{unknown[0]} is not a parameter of {kind}", hint)
    if missing:
        return _Fault(at, f"{kind} lacks {', '.join(missing)}", f"it takes {', '.join(names)}")
    if kind == "choice":
        return _dimension(at, path, kind, body["values"] if isinstance(body["values"], list) else [])
    return _dimension(at, path, kind, [body[name] for name in names])


def _dimension(at: KeyPath, path: str, kind: str, parameters: list[Any]) -> Dimension | _Fault:
    known = ALIASES.get(kind, kind)
    if known not in PARAMETERS:
        hint = did_you_mean(kind, [*PARAMETERS, *ALIASES]) or f"choose from {', '.join(PARAMETERS)}"
        hint = "did you mean choice?" if kind.startswith("grid") else hint
        return _Fault(at, f"{kind} is not a distribution", hint)
    whole = [int(each) if isinstance(each, float) and each.is_integer() else each for each in parameters]
    parameters = whole if "randint" in known else parameters
    fault = fault_in(known, parameters) or _fault_together(path, known, parameters)
    if fault is not None:
        return _Fault(at, f"search.{path}: {kind} {fault}")
    return Dimension(path, Distribution(known, tuple(parameters)), at)


def _fault_together(path: str, kind: str, parameters: list[Any]) -> str | None:
    """What is wrong with the values of settings that vary together, if anything."""
    count = len(together(path))
    if count == 1:
        return None
    listed = kind == "choice" and all(isinstance(each, list) and len(each) == count for each in parameters)
    return None if listed else f"takes lists of {count} values, for that many settings vary together"


def search_diagnostics(document: Document) -> list[Diagnostic]:
    """What is wrong with the search section of a spec that is otherwise valid."""
    search = document.data.get("search")
    if search is None:
        return []
    base = replace(document, data={key: value for key, value in document.data.items() if key != "search"})
    entries = list(_entries(search))
    if len(entries) > MAX_DIMENSIONS:
        cause = f"search varies {len(entries):,} settings, and can vary at most {MAX_DIMENSIONS}"
        return [Diagnostic(cause, key_span(("search",), document), "leave some out", REMEDY)]
    if not entries:
        hint = "write agent.algorithm.gamma__uniform: [0.9, 0.999] below it, or leave it out"
        return [Diagnostic("search names no setting", key_span(("search",), document), hint, REMEDY)]
    problems: list[Diagnostic] = []
    space: dict[str, Dimension] = {}
    for entry in entries:
        if isinstance(entry, _Fault):
            problems.append(Diagnostic(entry.cause, key_span(("search", *entry.at), document), entry.hint, REMEDY))
        elif entry.path in space:
            problems.append(Diagnostic(f"{entry.path} is searched twice", key_span(("search", *entry.at), document)))
        else:
            space[entry.path] = entry
            misplaced = _misplaced(entry, base, document)
            problems += misplaced or [*_unlisted(entry, document), *_unforkable(entry, base, document)]
    return problems or _unfitting(tuple(space.values()), base, document)


def _misplaced(dimension: Dimension, base: Document, document: Document) -> list[Diagnostic]:
    """A path that is no setting, or a value that the setting could never take."""
    at, slot = key_span(("search", *dimension.at), document), None
    for path in (tuple(each.split(".")) for each in dimension.paths):
        slot = find(path, base.data)
        if slot is None:
            return [replace(unknown_setting(path, base), at=at)]
        if path[0] in FIXED or slot.type.words == "section":
            return [Diagnostic(f"{dotted(path)} is not a single setting that can be searched", at, "", REMEDY)]
    for value in dimension.distribution.probes():
        tried, fault = _attempt(base, {dimension.path: value})
        if fault is not None and not is_only_conflict(fault):
            problem = diagnostics_in(fault, tried, 1)[0]
            is_between = slot is not None and slot.type.words == "whole number" and isinstance(value, float)
            hint = "draw whole numbers with randint, lograndint or quniform" if is_between else problem.hint
            return [replace(problem, at=at, hint=hint)]
    return []


def _unlisted(dimension: Dimension, document: Document) -> Iterable[Diagnostic]:
    """A distribution of which a grid cannot try every value."""
    meta = document.data.get("meta")
    if not isinstance(meta, Mapping) or meta.get("search_sampler") != "grid" or dimension.distribution.listed():
        return []
    cause = f"a grid cannot list the values of {dimension.path}, which {dimension.distribution.kind} draws from"
    return [Diagnostic(cause, key_span(("search", *dimension.at), document), GRID_REMEDY, REMEDY)]


def _unforkable(dimension: Dimension, base: Document, document: Document) -> Iterable[Diagnostic]:
    """A setting that forks cannot change, in a search by population-based training, which changes it in forks."""
    meta = document.data.get("meta")
    scheduler = meta.get("search_scheduler") if isinstance(meta, Mapping) else None
    if not isinstance(scheduler, Mapping) or scheduler.get("name") != "pbt":
        return []
    why = _why_fixed(dimension, base)
    cause = f"pbt cannot vary {dimension.path}, which a fork has from its parent: {why}"
    hint = "leave it out, or meta.search_scheduler.name: asha"
    return [Diagnostic(cause, key_span(("search", *dimension.at), document), hint, REMEDY)] if why else []


def _why_fixed(dimension: Dimension, base: Document) -> str | None:
    """Why a fork cannot have another value of that setting; None where it can."""
    if dimension.path.startswith("meta.") or dimension.path == "env.max_frame":
        return "all members of a population share how long they train, and how they are recorded and judged"
    tried = [_attempt(base, {dimension.path: value}) for value in dimension.distribution.probes()]
    fitting = [Spec.model_validate(document.data) for document, fault in tried if fault is None]
    for other in fitting[1:]:
        for change in (*changes(fitting[0], other), *changes(other, fitting[0])):
            if not change.allowed:
                return change.rule.why
    return None


def _unfitting(space: Space, base: Document, document: Document) -> list[Diagnostic]:
    """A space of which no draw at all makes a spec that fits together."""
    rng = Random(0)
    problem = Diagnostic("")
    for _ in range(TRIES):
        tried, fault = _attempt(base, sample(space, rng))
        if fault is None:
            return []
        problem = diagnostics_in(fault, tried, 1)[0]
    at = key_span(("search", *space[0].at), document)
    return [Diagnostic(f"none of {TRIES} draws fits: {problem.cause}", at, problem.hint, REMEDY)]


def _attempt(base: Document, values: Mapping[str, Any]) -> tuple[Document, ValidationError | None]:
    """The spec with some values drawn, and what is wrong with it if anything."""
    tried = replace(base, data=apply(base.data, values))
    try:
        Spec.model_validate(tried.data)
    except ValidationError as fault:
        return tried, fault
    return tried, None
