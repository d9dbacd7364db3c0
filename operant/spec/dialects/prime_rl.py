"""The files of prime-rl, of today's form and of the one that air-agent used, translated to native specs.

Batches count completions there as here. Servers, transports and placement decide how fast a run is and not what it
learns. A file says its model and environments once for three programs, or each program has a file of its own: any of
the three is read with the two beside it. `prime_rl_table` has the settings, `prime_rl_env` the environments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.converter import Converter, has_shape
from operant.spec.dialects.prime_rl_table import TABLE
from operant.spec.dialects.table import read
from operant.spec.reading.document import Document, leaves

LAB = "prime-rl"
PROGRAMS = ("orchestrator", "trainer", "inference")
SHARED = ("max_steps", "model", "ckpt", "output_dir", "name")
TRAINER_SIGNS = {"loss", "optim", "scheduler", "data", "weight_broadcast", "rollout_transport"}
INFERENCE_SIGNS = {
    "max_model_len",
    "tensor_parallel_size",
    "gpu_memory_utilization",
    "enable_lora",
    "parallel",
    "server",
}
OTHERS = {"agent", "env", "meta", "roles", "data_iter", "orchestrator"}
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
UNSET = re.compile(r"\$([A-Za-z_]\w*)/")


def recognises(content: Any) -> bool:
    """Whether plain data has the shape of a file for all programs, or for one of them."""
    return any(has_shape(content, each, dict, foreign="agent") for each in PROGRAMS) or program_of(content) is not None


def program_of(content: Any) -> str | None:
    """The program that a file is for, where it is for one alone."""
    if not isinstance(content, dict):
        return None
    entries = content.get("env")
    if isinstance(entries, list) and {"batch_size", "rollouts_per_example", "group_size"} & set(content):
        return "orchestrator" if all(isinstance(each, dict) and "id" in each for each in entries) else None
    if OTHERS & set(content):
        return None
    if len(TRAINER_SIGNS & set(content)) >= 2 and isinstance(content.get("model"), dict):
        return "trainer"
    return "inference" if "model" in content and len(INFERENCE_SIGNS & set(content)) >= 2 else None


def joined(document: Document, beside: Sequence[Document]) -> Document:
    """The file of one program with those of the others beside it, as one; each keeps its own places."""
    own = program_of(document.data)
    if own is None:
        return document
    found: dict[str, Document] = {}
    for each in [document, *beside]:
        found.setdefault(program_of(each.data) or "", each)
    whole = replace(document, data={}, marks={})
    for program in PROGRAMS:
        if program in found:
            whole = whole.placed((program,), found[program])
            shared = {key: part for key, part in found[program].parts().items() if key in SHARED}
            for key, part in shared.items():
                whole = whole if key in whole.data or program == "inference" else whole.placed((key,), part)
    return whole


def from_environment(document: Document, names: Sequence[str]) -> Document:
    """The file with each `${NAME}` filled from the environment; what -s names, and what is not set, is left."""
    pieces: dict[tuple[str | int, ...], Document] = {}
    for path, value in leaves(document.data):
        if isinstance(value, str) and VARIABLE.search(value):
            filled = VARIABLE.sub(lambda found: _value(found, names), value)
            marks = {(): document.marks[path]} if path in document.marks else {}
            pieces[path] = replace(document, data=filled, marks=marks)
    return document.refilled(pieces) if pieces else document


def _value(found: re.Match[str], names: Sequence[str]) -> str:
    name = found.group(1)
    return found.group(0) if name in names else os.environ.get(name, f"${name}")


def _sections(top: Section) -> None:
    conversion = top.conversion
    if "orchestrator" not in top.data:
        conversion.refuse(
            ("orchestrator",), "is missing: no file beside this one is an orchestrator's", "name orch.toml"
        )
    own = conversion.theirs.source.label
    for label in dict.fromkeys(mark.value.source.label for mark in conversion.theirs.marks.values()):
        if label not in (own, None):
            conversion.remark((), f"read with {label}, which lies beside it")
    conversion.set("meta.device", "auto", ("orchestrator",))
    conversion.set("meta.max_session", 1, ("orchestrator",))
    conversion.set("agent.algorithm.name", "grpo", ("orchestrator",))
    read(top, TABLE.chosen(conversion.kind))
    top.close_all()
    _refuse_unset(top)


def _refuse_unset(top: Section) -> None:
    """A variable that is not set stops only a setting that is used."""
    homes: Mapping[Any, Any] = top.conversion.origins
    for path, value in leaves(top.conversion.native.data):
        name = UNSET.search(value) if isinstance(value, str) else None
        if name is not None:
            origin = next((homes[path[:end]] for end in range(len(path), 0, -1) if path[:end] in homes), ())
            hint = f"export {name.group(1)}=..., or -s {name.group(1)}=..."
            top.conversion.refuse(origin, f"names the variable {name.group(1)}, which is not set", hint)


convert = Converter(LAB, _sections, TABLE)
