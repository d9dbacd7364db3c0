"""What the table of rlvr-experiments cannot say of `roles`: which one learns, its model, optimizer and precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.table import Row, read

DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "bfloat16"}


def roles(top: Section, rows: Mapping[str, Sequence[Row]]) -> None:
    """The trainer says model and optimizer; every other role must speak of the same model, but for the teacher."""
    found = top.items("roles")
    trainer = next((each for each in found if each.data.get("kind") == "titan" and _trains(each)), None)
    for role in found:
        kind = role.only("kind", {"titan": "titan", "vllm": "vllm"}, "is neither titan nor vllm")
        role.get("name")
        config = role.below("config")
        if kind == "titan" and role is not trainer:
            top.conversion.remark(role.path, "left out: the reference is a copy of the policy, kept beside the trainer")
            config.skip()
        elif kind is None:
            config.skip()
        else:
            read(config, rows[kind])
    if trainer is None:
        top.refuse("roles", "has no trainable role of the kind titan")


def _trains(role: Section) -> bool:
    config = role.data.get("config")
    return isinstance(config, dict) and config.get("trainable", True) is not False


def source_of(top: Section) -> tuple[Any, tuple[str | int, ...]]:
    """The model and where it is named: the trainer's own path, or else the one that the file names for its records."""
    for role in top.items("roles"):
        path = role.below("config").below("model").get("hf_assets_path") if role.data.get("kind") == "titan" else None
        if path is not None and _trains(role):
            return path, role.below("config").below("model").at("hf_assets_path")
    return top.below("model").get("path"), ("model", "path")


def model(section: Section, key: str) -> None:
    """The model that learns."""
    conversion, stated = section.conversion, section.get(key)
    source, origin = source_of(section.top)
    if source is None:
        section.refuse(key, "is missing, and no role names a model")
        return
    conversion.set("agent.model.source", source, origin)
    if stated is not None and stated != source:
        section.remark(key, f"left out: the trainer loads {source}")


def served_model(config: Section, key: str) -> None:
    """A server gets its weights from the trainer; the teacher has its own."""
    source, _ = source_of(config.top)
    role = config.conversion.theirs.data["roles"][config.path[1]]
    if role.get("name") != "teacher" and config.get(key, source) != source:
        config.lose(key, f"is another model than the trainer's, {source}")


def betas(optimizer: Section, key: str) -> None:
    """Both decays, with torchtitan's defaults."""
    optimizer.set(key, "agent.model.optimizer.betas", [optimizer.get("beta1", 0.9), optimizer.get("beta2", 0.95)])


def rates(schedule: Section, key: str) -> None:
    """The learning rate falls linearly over the whole run, or not at all."""
    kind, ratio = schedule.get("decay_type", "linear"), schedule.get(key, 1)
    if kind not in ("linear", "constant"):
        schedule.lose("decay_type", "has no counterpart: it falls linearly or not")
    if ratio == 0 or kind == "constant" or not schedule.data:
        schedule.get("min_lr_factor")
    elif ratio == 1:
        schedule.copy("min_lr_factor", "agent.model.optimizer.lr_end_fraction", 0.0)
    else:
        schedule.lose(key, "has no counterpart: it falls over the whole run or not at all")


def precision(training: Section, key: str) -> None:
    """The precision of passes, or else of the weights."""
    key = key if training.get(key) is not None else "dtype"
    if training.get(key) is None:
        return
    kind = training.only(key, DTYPES, "has no counterpart: there are float32 and bfloat16")
    training.set(key, "agent.model.dtype", kind or "float32")
    if training.get(key) == "float16":
        training.remark(key, "bfloat16 here: float16 would need a scaled loss")


def recompute(section: Section, key: str) -> None:
    """Every layer twice, or none."""
    if section.get(key, "none") != "none":
        section.set(key, "agent.model.gradient_checkpointing", True)
