"""A spec however it is given: a name, a file, a mapping or an object, with settings changed by keyword."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.run.expense import MemoryForecast
from operant.spec.errors import dotted
from operant.spec.load import Loaded, load, load_mapping
from operant.spec.paths import known_paths
from operant.spec.reading.document import lookup
from operant.spec.schema import Spec

AnySpec = str | Path | Mapping[str, Any] | Spec | Loaded


def load_spec(spec: AnySpec, name: str | None = None, /, **settings: Any) -> Spec:
    """The whole spec with every default, checked as `operant check` does.

    `name` chooses one of a file of several. `settings` are those of `train`. Raises `SpecError` with the place of
    everything that is wrong.
    """
    return loaded_spec(spec, name, settings).spec


def loaded_spec(spec: AnySpec, name: str | None, settings: Mapping[str, Any]) -> Loaded:
    """The spec with its source; `settings` by dotted path, by section (a mapping), or by a name that is unique."""
    if isinstance(spec, Loaded):
        if not settings:
            return spec
        spec = spec.spec
    if isinstance(spec, Spec):
        spec = spec.model_dump(mode="json")
    base = _loaded(spec, name, [])
    if not settings:
        return base
    data = base.spec.model_dump(mode="json")
    texts = [text for key, value in settings.items() for text in _overrides(key, value, data)]
    return _loaded(spec, name, texts)


def paths_named(key: str, data: Mapping[str, Any]) -> list[str]:
    """The dotted paths of the settings called `key` in the sections that a spec of this data has."""
    same = [path for path in known_paths(data) if str(path[-1]) == key]
    # Sections that this spec leaves out (a language model, in one of another engine) are not meant.
    return [dotted(path) for path in same if isinstance(lookup(data, path[:-1]), dict)]


def validate(spec: Spec, place: str, device_memory: str | None = None, forecast: bool = False) -> MemoryForecast | None:
    """Let the engine refuse what it cannot run here, naming `place`, and what does not fit the device's memory.

    With `device_memory` that is a GPU which need not be here. Returns the memory by part, where the engine can tell
    and the model is not tiny, or it is asked to `forecast`.
    """
    from operant.engines import engine_of

    try:
        engine = engine_of(spec)
        foretells = hasattr(engine, "forecast_memory")
        if device_memory is not None and not foretells:
            raise UsageError(
                f"the {spec.engine_name} engine does not foretell memory", remedy="leave --device-memory out"
            )
        elsewhere = device_memory is not None and spec.meta.device == "cuda"
        engine.validate(_on_cpu(spec) if elsewhere else spec)
        wanted = foretells and (forecast or device_memory is not None or not engine.is_small(spec))
        memory = engine.forecast_memory(spec, device_memory) if wanted else None
        if memory is not None and memory.refusal is not None:
            raise memory.refusal
    except UsageError as refusal:
        refusal.place = refusal.place or place
        raise
    return memory


def _on_cpu(spec: Spec) -> Spec:
    """The spec as a machine without the GPU it asks for can look at it."""
    return spec.model_copy(update={"meta": spec.meta.model_copy(update={"device": "cpu"})})


def _loaded(spec: str | Path | Mapping[str, Any], name: str | None, texts: list[str]) -> Loaded:
    if isinstance(spec, Mapping):
        return load_mapping(spec, name, texts)
    return load(str(spec), name, texts)


def _overrides(key: str, value: Any, data: Mapping[str, Any]) -> list[str]:
    """One keyword as what `-s` takes."""
    if "." in key:
        return [_text(key, value)]
    if key in Spec.model_fields:
        if isinstance(value, Mapping):
            return [text for inner, each in value.items() for text in _inside(f"{key}.{inner}", each)]
        return [_text(key, value)]
    paths = paths_named(key, data)
    if len(paths) == 1:
        return [_text(paths[0], value)]
    if paths:
        raise UsageError(
            f"{key} is the name of {len(paths)} settings: {', '.join(paths)}",
            remedy=f"name one by its path: **{{{paths[0]!r}: {value!r}}}",
        )
    # The loader knows what was nearly meant.
    return [_text(key, value)]


def _inside(path: str, value: Any) -> list[str]:
    """A mapping changes the settings that it names and leaves the others; `name` and `type` choose, and come first."""
    if not isinstance(value, Mapping):
        return [_text(path, value)]
    chosen = sorted(value.items(), key=lambda item: item[0] not in ("name", "type"))
    return [text for key, each in chosen for text in _inside(f"{path}.{key}", each)]


def _text(path: str, value: Any) -> str:
    return f"{path}={json.dumps(value, default=_plain)}"


def _plain(value: Any) -> Any:
    """Numbers of numpy, paths and models as what JSON knows."""
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)
