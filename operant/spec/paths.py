"""Where a dotted path leads in the schema, given what a spec says so far.

What may stand at `agent.algorithm.gamma` depends on `agent.algorithm.name`, so every question here
is asked of a path together with the plain data of a spec (which need not be valid).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from operant.spec.field_types import FieldType, field_type
from operant.spec.fields import Closed
from operant.spec.reading.document import KeyPath
from operant.spec.registry import PartRegistry
from operant.spec.schedules import SCHEDULES
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import ALGORITHMS
from operant.spec.settings.language import (
    DialogueSpec,
    LmOptimizerSpec,
    LoraSpec,
    ModelSpec,
    PartSpec,
    RaySpec,
    TextSpec,
    TinySpec,
    VllmSpec,
)
from operant.spec.settings.launch import DstackSpec, LaunchSpec, RayJobSpec, SageMakerSpec, SlurmSpec
from operant.spec.settings.memories import MEMORIES
from operant.spec.settings.nets import NETS
from operant.spec.settings.optimizers import OptimizerSpec
from operant.spec.settings.rewards import REWARDS
from operant.spec.settings.schedulers import SCHEDULERS
from operant.spec.settings.search import SearchResourcesSpec, SearchSchedulerSpec
from operant.spec.settings.sections import AgentSpec, EnvSpec, MetaSpec
from operant.spec.settings.supervised import SftDataSpec, WarmupSpec
from operant.spec.settings.trackers import TRACKERS

REGISTRIES: dict[str, PartRegistry[Any]] = {
    "algorithm": ALGORITHMS,
    "net": NETS,
    "memory": MEMORIES,
    "scheduler": SCHEDULERS,
    "schedule": SCHEDULES,
    "reward": REWARDS,
    "tracker": TRACKERS,
}
SECTIONS: dict[tuple[str, ...], type[Closed]] = {
    ("spec",): Spec,
    ("env",): EnvSpec,
    ("agent",): AgentSpec,
    ("meta",): MetaSpec,
    ("model",): ModelSpec,
    ("model", "tiny"): TinySpec,
    ("model", "lora"): LoraSpec,
    ("model", "optimizer"): LmOptimizerSpec,
    ("model", "vllm"): VllmSpec,
    ("text",): TextSpec,
    ("text", "mixture"): PartSpec,
    ("text", "dialogue"): DialogueSpec,
    ("warmup",): WarmupSpec,
    ("sft_data",): SftDataSpec,
    ("ray",): RaySpec,
    ("search_scheduler",): SearchSchedulerSpec,
    ("search_resources",): SearchResourcesSpec,
    ("launch",): LaunchSpec,
    ("launch", "slurm"): SlurmSpec,
    ("launch", "ray"): RayJobSpec,
    ("launch", "dstack"): DstackSpec,
    ("launch", "sagemaker"): SageMakerSpec,
    ("optimizer",): OptimizerSpec,
    **{(kind, name): model for kind, registry in REGISTRIES.items() for name, model in registry.items()},
}


@dataclass(frozen=True)
class Slot:
    """A place in the schema: the section that holds it, its field, and the type of value it takes."""

    owner: type[Closed]
    field: FieldInfo
    type: FieldType


def find(path: KeyPath, data: Any) -> Slot | None:
    """The slot that `path` names in a spec of this data; None when there is no such setting."""
    return _walk(path, data)[0]


def _walk(path: KeyPath, data: Any) -> tuple[Slot | None, type[Closed] | None]:
    """The slot that `path` names, and the section that stands there."""
    model: type[Closed] | None = Spec
    slot: Slot | None = None
    for part in path:
        if slot is not None and slot.type.words == "mapping":
            return slot, None
        if slot is not None and slot.type.item is not None and _is_item(part, slot.type.item):
            slot = Slot(slot.owner, slot.field, slot.type.item)
            data = _item(part, data, slot.type)
            model = slot.type.section_for(data)
            continue
        if model is None or part not in model.model_fields:
            return None, None
        field = model.model_fields[str(part)]
        slot = Slot(model, field, field_type(field))
        data = data.get(part) if isinstance(data, dict) else None
        model = slot.type.section_for(data)
    return slot, model


def _is_item(part: str | int, item: FieldType) -> bool:
    """Whether a part of a path names an item of a list; a list of parts may also be written as settings by name."""
    return isinstance(part, int) or (item.one_of is not None and item.one_of.keyed)


def _item(part: str | int, data: Any, item: FieldType) -> Any:
    """The data of that item, as the section that it stands for."""
    if isinstance(part, int):
        found = data[part] if isinstance(data, list) and part < len(data) else None
        return {item.one_of.tag: found} if item.one_of and isinstance(found, str) else found
    found = data.get(part) if isinstance(data, dict) else None
    tag = {item.one_of.tag: part} if item.one_of else {}
    return {**found, **tag} if isinstance(found, dict) else tag


def owner_of(path: KeyPath, data: Any) -> type[Closed]:
    """The section that the last part of `path` stands in, or would if it were a setting."""
    slot, section = _walk(path[:-1], data)
    if slot is None:
        return Spec
    return section or slot.owner


def words_of(model: type[Closed]) -> tuple[str, ...]:
    """The words that `operant help` knows a section by."""
    found = next((words for words, each in SECTIONS.items() if each is model), None)
    own = ((kind, name) for kind, registry in REGISTRIES.items() if (name := registry.name_of(model)))
    return found or next(own, ("spec",))


def kind_of(registry: Mapping[str, type[Closed]]) -> str:
    """The word that `operant help` knows a registry by."""
    return next(kind for kind, each in REGISTRIES.items() if each is registry)


def title(model: type[Closed]) -> str:
    """What a section is called in a sentence: ppo, env, a spec."""
    return "a spec" if model is Spec else words_of(model)[-1]


def help_command(model: type[Closed]) -> str:
    """The command that lists a section's settings."""
    return " ".join(("operant", "help", *words_of(model)))


def known_paths(data: Any, model: type[Closed] = Spec, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every setting of a spec that makes these choices of algorithm, net and memory."""
    for name, each in _field_types(model).items():
        at = (*path, name)
        yield at
        below = data.get(name) if isinstance(data, dict) else None
        section = each.section_for(below)
        if section is not None and (not each.scheduled or isinstance(below, dict)):
            yield from known_paths(below, section, at)


@cache
def _field_types(model: type[Closed]) -> dict[str, FieldType]:
    """The type of each field of a section, worked out once: a file of many slips asks for them again and again."""
    return {name: field_type(field) for name, field in model.model_fields.items()}
