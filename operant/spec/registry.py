"""Registries of settings classes: what may be named as an algorithm, a net, a memory, a schedule ... in a spec.

Beside the built-in names a spec may name anybody's part, as `module:object` or by an entry point of an installed
package; its settings are then checked, explained and stored as those of the built-in ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo, ValidationInfo, create_model
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, ValidationError, core_schema

from operant.errors import UsageError
from operant.registry import installed, load
from operant.spec.fields import Closed, fixed

T = TypeVar("T", bound=Closed)
NOT_FOUND = "part_not_found"
"""The type of the error for a part that cannot be loaded; its context has the `UsageError`."""


class PartRegistry(Mapping[str, type[T]], Generic[T]):
    """Settings classes of one kind by name: the built-in ones, and others as they are asked for.

    `path` is the setting that names one, and `kind` the word for it in commands; a `keyed` one may be the key of a
    mapping instead. Iteration gives the built-in names only. Of another one, the object that its import path leads to
    is a subclass of `base`, or has one as its attribute `SETTINGS`; `adapt` makes of both the class that is meant.
    Where a plain function may stand too, `from_function` makes its settings class. In the class that stands in the
    registry the field `tag` has the name that the spec says.
    """

    def __init__(
        self,
        path: str,
        base: type[T],
        builtin: Mapping[str, type[T]],
        adapt: Callable[[Any, type[T], str], type[T]] = lambda found, settings, path: settings,
        kind: str | None = None,
        from_function: Callable[[Any, str], type[T]] | None = None,
        keyed: bool = False,
    ) -> None:
        *_, named, self.tag = path.split(".")
        self.kind, self.keyed = kind or named, keyed
        self._from_function = from_function
        self.path, self.base = path, base
        self._builtin = dict(builtin)
        self._adapt = adapt
        self._own: dict[str, type[T]] = {}

    @property
    def group(self) -> str:
        """The entry-point group of this kind of part."""
        return {"memory": "operant.memories"}.get(self.kind, f"operant.{self.kind}s")

    def __getitem__(self, name: str) -> type[T]:
        try:
            return self.find(name)
        except UsageError as problem:
            raise KeyError(name) from problem

    def __iter__(self) -> Iterator[str]:
        return iter(self._builtin)

    def __len__(self) -> int:
        return len(self._builtin)

    def names(self) -> list[str]:
        """Every name that needs no path: the built-in ones and those of installed packages."""
        return list(dict.fromkeys([*self._builtin, *installed(self.group)]))

    def name_of(self, model: type[Closed]) -> str | None:
        """The name by which a class stands here; None for one that does not."""
        return next((name for name, each in {**self._builtin, **self._own}.items() if each is model), None)

    def is_own(self, name: str) -> bool:
        """Whether a name is not built in, but a path to be loaded or declared by an installed package."""
        return name not in self._builtin and (":" in name or name in installed(self.group))

    def find(self, name: str) -> type[T]:
        """The class of a name; `UsageError` where there is none, it cannot be imported, or is of another kind."""
        if name in self._builtin:
            return self._builtin[name]
        if name not in self._own:
            path = name if ":" in name else installed(self.group).get(name)
            if path is None:
                raise UsageError(f"{self.path}: there is no {self.kind} {name}", remedy=f"operant help {self.kind}")
            self._own[name] = self._named(name, path)
        return self._own[name]

    def _named(self, name: str, path: str) -> type[T]:
        found = load(path, self.path)
        settings: Any = found if _is_settings(found, self.base) else getattr(found, "SETTINGS", None)
        if self._from_function is not None and inspect.isfunction(found):
            settings = self._from_function(found, path)
        if not _is_settings(settings, self.base):
            what = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
            by_function = "name a function, or " if self._from_function else ""
            raise UsageError(
                f"{self.path}: {path} is {what}, neither settings of one nor a class with such SETTINGS",
                remedy=f"{by_function}subclass {self.base.__module__}.{self.base.__name__}",
            )
        if inspect.isabstract(settings):
            lacking = ", ".join(sorted(settings.__abstractmethods__))
            raise UsageError(f"{self.path}: {path} lacks {lacking}", remedy=f"define {lacking} in {path}")
        settings = self._adapt(found, settings, path)
        field = fixed("each part keeps what it needs itself", default=name, description=f"Own {self.kind}.")
        # The class may derive from a built-in one, whose own field takes that one's name only.
        fields: dict[str, Any] = {self.tag: (Literal[name], field)}
        named: Any = create_model(settings.__name__, __base__=settings, **fields)
        named.__doc__, named.__module__ = settings.__doc__, settings.__module__
        return named


def in_engines(**paths: str) -> Mapping[str, str]:
    """For a built-in part, what each engine has for it: `module:object` below the package of the engine."""
    return {engine: f"operant.engines.{engine}.{path}" for engine, path in paths.items()}


def _is_settings(found: Any, base: type[Closed]) -> bool:
    return isinstance(found, type) and issubclass(found, base)


@dataclass(frozen=True, eq=False)
class OneOf:
    """Marks a field that holds one of a registry's classes, chosen by its `tag` key.

    The first class of the registry is meant when the key is absent. An entry added to the
    registry is all that a new class needs to become part of the spec.
    """

    registry: Mapping[str, type[Closed]]
    tag: str = "name"

    @property
    def keyed(self) -> bool:
        """Whether one may also be written as the key of a mapping."""
        return isinstance(self.registry, PartRegistry) and self.registry.keyed

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(each) for name, each in self.registry.items()}
        builtin = core_schema.tagged_union_schema(choices, discriminator=self.name_in)
        serialize = core_schema.wrap_serializer_function_ser_schema(self._serialize, info_arg=True)
        return core_schema.with_info_wrap_validator_function(self._validate, builtin, serialization=serialize)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Only the default may leave its tag out, so that an editor finds exactly one that matches."""
        alternatives = handler(schema)
        for other in alternatives["oneOf"][1:]:
            other["required"] = [self.tag]
        if isinstance(self.registry, PartRegistry):
            name = {"type": "string", "pattern": ":", "description": "An own part, as `module:object`."}
            own = {"type": "object", "properties": {self.tag: name}, "required": [self.tag], "title": "Own part"}
            alternatives["oneOf"].append(own)
        return alternatives

    def name_in(self, value: Any) -> str | None:
        """The registry name that `value` asks for; None when it is no mapping at all."""
        if isinstance(value, Closed):
            return getattr(value, self.tag, None)
        return str(value.get(self.tag, self.default)) if isinstance(value, Mapping) else None

    @property
    def default(self) -> str:
        """The name that is meant when none is given."""
        return next(iter(self.registry))

    @property
    def names(self) -> list[str]:
        """The names that can be listed."""
        return self.registry.names() if isinstance(self.registry, PartRegistry) else list(self.registry)

    def _own_name(self, value: Any) -> str | None:
        """The name of a part that is not built in, where `value` asks for one."""
        name = self.name_in(value)
        is_own = name is not None and isinstance(self.registry, PartRegistry) and self.registry.is_own(name)
        return name if is_own else None

    def _validate(self, value: Any, builtin: Callable[[Any], Any], info: ValidationInfo) -> Any:
        name = self._own_name(value)
        if name is None:
            return builtin(value)
        assert isinstance(self.registry, PartRegistry)
        try:
            model = self.registry.find(name)
        except UsageError as problem:
            fault = PydanticCustomError(NOT_FOUND, "{reason}", {"reason": problem.cause, "problem": problem})
            details = InitErrorDetails(type=fault, loc=(self.tag,), input=name)
            raise ValidationError.from_exception_data("part", [details]) from None
        return model.model_validate(value, context=info.context)

    def _serialize(self, value: Any, builtin: Callable[[Any], Any], info: SerializationInfo) -> Any:
        if self._own_name(value) is None:
            return builtin(value)
        return value.model_dump(mode=info.mode)
