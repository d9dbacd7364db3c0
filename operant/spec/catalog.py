"""Every setting that a spec may have, whatever it chooses: for `operant help NAME` and for the shell's completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from operant.spec.field_types import FieldType, field_type
from operant.spec.fields import Closed
from operant.spec.reading.diagnostics import shown
from operant.spec.schedules import Linear
from operant.spec.schema import Spec

ITEM = "[]"
"""Ends the name of a list in the path of a setting of its items."""


@dataclass(frozen=True)
class Setting:
    """A setting at its path; `chosen` are the choices that bring it, such as `ppo` at `agent.algorithm`."""

    path: str
    chosen: Mapping[str, str]
    field: FieldInfo
    type: FieldType

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def values(self) -> tuple[str, ...]:
        """The values as a file spells them, where they can be listed; else the default, if there is one."""
        if not self.type.scheduled and (self.type.one_of is not None or self.type.section is not None):
            return ()
        listed = ("true", "false") if self.type.words == "true or false" else self.type.choices
        null = ("null",) if self.type.nullable else ()
        default = default_text(self.field)
        return tuple(dict.fromkeys((*listed, *null))) if listed else tuple(dict.fromkeys((default, *null)))


def settings(model: type[Closed] = Spec, path: str = "", chosen: Mapping[str, str] | None = None) -> Iterator[Setting]:
    """Every setting of a section and of those below it, once for each choice that has it."""
    for name, field in model.model_fields.items():
        accepted, at = field_type(field), f"{path}.{name}" if path else name
        yield Setting(at, chosen or {}, field, accepted)
        if accepted.scheduled:
            continue
        if accepted.one_of is not None:
            for choice, section in accepted.one_of.registry.items():
                yield from settings(section, at, {**(chosen or {}), at: choice})
        elif accepted.section is not None:
            yield from settings(accepted.section, at, chosen)
        elif accepted.item is not None and accepted.item.one_of is not None:
            for choice, section in accepted.item.one_of.registry.items():
                if accepted.item.one_of.keyed:
                    yield from settings(section, f"{at}.{choice}", chosen)
                else:
                    yield from settings(section, at + ITEM, {**(chosen or {}), at: choice})
        elif accepted.item is not None and accepted.item.section is not None:
            yield from settings(accepted.item.section, at + ITEM, chosen)


def settings_at(words: Sequence[str]) -> list[Setting]:
    """The settings whose path ends with these words: `gamma`, `algorithm gamma` or `agent.algorithm.gamma`."""
    asked = ".".join(words).lower().split(".")
    return [each for each in settings() if each.path.lower().replace(ITEM, "").split(".")[-len(asked) :] == asked]


def default_text(field: FieldInfo) -> str:
    """The default as a file would spell it; a section's is its own defaults, so it is left blank."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, Linear):
        return ", ".join(f"{key}: {each:g}" for key, each in value.model_dump(exclude={"name"}).items())
    if isinstance(value, Closed):
        return ""
    return str(value) if isinstance(value, str) else shown(list(value) if isinstance(value, tuple) else value)
