"""What the spec classes say: tables for `operant help` and the documentation, and the JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic.fields import FieldInfo

from operant.errors import UsageError
from operant.registry import installed
from operant.spec.builtin import SECTION_NAMES
from operant.spec.catalog import Setting, default_text, settings, settings_at
from operant.spec.distributions import ABOUT, PARAMETERS
from operant.spec.field_types import FieldType, field_type
from operant.spec.fields import Closed
from operant.spec.paths import REGISTRIES, SECTIONS, help_command, kind_of, words_of
from operant.spec.reading.diagnostics import nearest
from operant.spec.schema import Spec

Words = tuple[str, ...]
SEARCH = ("search",)
MAX_NEAR = 3
MIN_STEM = 2
SEARCH_SUMMARY = (
    "Distributions to draw settings from (path__distribution: [parameters]); `operant search SPEC` tries them."
    " A name without a dot sets several settings: by `paths: [...]`, or by choices that are mappings."
)


@dataclass(frozen=True)
class Row:
    """One setting: its name, what it takes in plain words, its default and what it means."""

    name: str
    type: str
    default: str
    range: str
    description: str


@dataclass(frozen=True)
class FoundRow(Row):
    """A setting found by its name: `name` is its whole path, `of` the algorithm or other choice that has it."""

    of: str


@dataclass(frozen=True)
class Topic:
    """What `operant help WORDS` shows."""

    title: str
    summary: str
    rows: tuple[Row, ...]


def topics() -> list[tuple[str, str]]:
    """(words, one line about it) of everything that can be described."""
    listed = [(" ".join(words), _summary(model)) for words, model in SECTIONS.items()]
    return [*listed, (SEARCH[0], SEARCH_SUMMARY)]


def describe(words: Sequence[str]) -> Topic:
    """The topic that the words name: none at all, a section, a kind such as `net`, or one such as `net mlp`.

    One word is enough where it names only one thing, so `ppo` is `algorithm ppo`. Words that name no topic may be the
    name of a setting, or the end of its path: `gamma`, `agent.algorithm.gamma`.
    """
    own = _own(words)
    if own is not None:
        return _topic(own)
    key = tuple(word.lower() for word in words)
    if not key:
        return Topic("topics", "What `operant help` can describe.", tuple(_pointer(*each) for each in topics()))
    if key == SEARCH:
        return Topic("search", SEARCH_SUMMARY, tuple(_distribution(name) for name in PARAMETERS))
    if len(key) == 1 and key[0] in REGISTRIES:
        return _choices(key[0])
    model = _by_words(key)
    if model is None:
        return _found(key)
    return _topic(model)


def _topic(model: type[Closed]) -> Topic:
    return Topic(_title(model), _summary(model), tuple(_row(*each) for each in model.model_fields.items()))


def _own(words: Sequence[str]) -> type[Closed] | None:
    """The settings of an own part: its kind and its name, or its name alone where that is `module:object`."""
    *kinds, name = words or ("",)
    if kinds and kinds[0] in REGISTRIES and REGISTRIES[kinds[0]].is_own(name):
        return REGISTRIES[kinds[0]].find(name)
    if kinds or ":" not in name:
        return None
    return next((found for registry in REGISTRIES.values() if (found := registry.get(name))), None)


def _choices(kind: str) -> Topic:
    registry = REGISTRIES[kind]
    paths = {name: path for name, path in installed(registry.group).items() if name not in list(registry)}
    own = (_pointer(name, f"Of an installed package, from {path}.") for name, path in paths.items())
    rows = (*(_pointer(name, _summary(model)) for name, model in registry.items()), *own)
    return Topic(kind, f"Choose one, and see its settings with `operant help {kind} {rows[0].name}`.", rows)


def _by_words(key: Words) -> type[Closed] | None:
    """The section of these lower-case words, or the only one that ends with them."""
    sections = {tuple(word.lower() for word in words): model for words, model in SECTIONS.items()}
    found = [model for words, model in sections.items() if words[-1:] == key]
    return sections.get(key) or (found[0] if len(found) == 1 else None)


def _found(key: Words) -> Topic:
    """The settings of that name, or the section at that path."""
    found = settings_at(key)
    if not found:
        raise _unknown(key)
    accepted = found[0].type
    if accepted.one_of is not None and not accepted.scheduled:
        return _choices(kind_of(accepted.one_of.registry))
    if accepted.words == "section" and accepted.section is not None:
        return describe(words_of(accepted.section))
    places = len({each.path for each in found})
    summary = "Every setting of that name." if places > 1 else "The setting, wherever it stands."
    return Topic(".".join(key), summary, tuple(dict.fromkeys(_found_row(each) for each in found)))


def _found_row(setting: Setting) -> FoundRow:
    row = _row(setting.path, setting.field)
    of = list(setting.chosen.values())[-1] if setting.chosen else ""
    return FoundRow(row.name, "", row.default, row.range, row.description, of)


def _unknown(key: Words) -> UsageError:
    asked = " ".join(key)
    found = _nearest_paths(asked) if "." in asked else _nearest_names(key)
    hint = f"; did you mean {' or '.join(found)}?" if found else ""
    return UsageError(f"there is no help on {asked}{hint}", remedy=" ".join(("operant help", *found[:1])))


def _nearest_paths(asked: str) -> list[str]:
    return get_close_matches(asked, sorted({each.path for each in settings()}), n=1, cutoff=0.7)


def _nearest_names(key: Words) -> list[str]:
    """Settings whose name begins with the word, else the nearest topic, else names near it or that hold it."""
    asked, last = " ".join(key), {words[-1]: " ".join(words) for words in SECTIONS}
    known = [*(" ".join(words) for words in SECTIONS), *REGISTRIES, *SEARCH]
    topic = nearest(asked, known) or last.get(nearest(key[-1], last) or "")
    names = sorted({each.name for each in settings()})
    begun = [name for name in names if name.startswith(asked)] if len(asked) > MIN_STEM else []
    near = [topic] if topic else get_close_matches(asked, names, n=MAX_NEAR, cutoff=0.75)
    return (begun or near or [name for name in names if asked in name])[:MAX_NEAR]


def _title(model: type[Closed]) -> str:
    return help_command(model).removeprefix("operant help ")


def _summary(model: type[Closed]) -> str:
    return (model.__doc__ or "").partition("\n")[0]


def _pointer(name: str, about: str) -> Row:
    return Row(name, "", "", "", about)


def _distribution(name: str) -> Row:
    return Row(name, f"[{', '.join(PARAMETERS[name])}]", "", "", ABOUT[name])


def _row(name: str, field: FieldInfo) -> Row:
    accepted = field_type(field)
    about = f"{field.description or ''}{_see(accepted)}"
    return Row(name, accepted.type, default_text(field), accepted.range, about)


def _see(accepted: FieldType) -> str:
    """Where a section's own settings are described."""
    if accepted.words != "section" or accepted.section is None:
        return ""
    of_kind = accepted.one_of and f"operant help {kind_of(accepted.one_of.registry)}"
    return f" See `{of_kind or help_command(accepted.section)}`."


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """A schema that accepts a file of one spec, or of several under their names."""
    spec = Spec.model_json_schema()
    shared = spec.pop("$defs")
    spec["properties"]["$schema"] = {"type": "string", "description": "Where editors find this schema."}
    named = {
        "title": "Named specs",
        "description": "Several specs, each under its name; a name that starts with _ only holds YAML anchors.",
        "type": "object",
        "propertyNames": {"not": {"enum": list(SECTION_NAMES)}},
        "patternProperties": {"^[A-Za-z0-9]": {"$ref": "#/$defs/Spec"}},
        "minProperties": 1,
    }
    return {
        "$schema": DIALECT,
        "title": "Operant spec",
        "description": "One experiment of Operant, or several under their names.",
        "anyOf": [{"$ref": "#/$defs/Spec"}, named],
        "$defs": {**shared, "Spec": spec},
    }
