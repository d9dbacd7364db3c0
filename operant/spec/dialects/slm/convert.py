"""One SLM-Lab spec: how it is recognized, its older form, the commas that its JSON may have, and its conversion."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.converter import Converter
from operant.spec.dialects.slm.learning import NAMES
from operant.spec.dialects.slm.search import dimensions
from operant.spec.dialects.slm.table import ROWS, kind_of
from operant.spec.dialects.table import Table, read, worked
from operant.spec.reading.diagnostics import nearest
from operant.spec.reading.document import Document, KeyPath, Source, lookup, put
from operant.spec.settings.algorithms import ALGORITHMS

ALGORITHM_NAMES = (
    "ActorCritic", "CrossQ", "DQN", "DoubleDQN", "PPO", "PPOSIL", "Random", "Reinforce", "SARSA", "SIL",
    "SoftActorCritic", "VanillaDQN",
)  # fmt: skip
MEMORY_NAMES = ("OnPolicyReplay", "OnPolicyBatchReplay", "OnPolicyCrossEntropy", "Replay", "PrioritizedReplay")
WRAPPED: tuple[KeyPath, ...] = (("agent",), ("env",), ("search", "agent"), ("search", "env"))


def is_slm(data: Any) -> bool:
    """Whether plain data has the shape of an SLM-Lab spec.

    `name: PPO` alone does not make it one: that may be a native spec with a capital slip.
    """
    if not isinstance(data, dict):
        return False
    agent, net = _part(data, "agent"), _part(data, "agent", "net")
    algorithm, memory = _part(data, "agent", "algorithm"), _part(data, "agent", "memory")
    name = str(algorithm.get("name"))
    return (
        is_older_form(data)
        or "distributed" in _part(data, "meta")
        or any(str(key).endswith("_spec") for key in (*algorithm, *net))
        or (str(net.get("type")).endswith("Net") and ":" not in str(net.get("type")))
        or memory.get("name") in MEMORY_NAMES
        or (name in ALGORITHM_NAMES and name.lower() not in ALGORITHMS)
        or agent.get("name") in ALGORITHM_NAMES
    )


def is_older_form(data: dict[str, Any]) -> bool:
    """The form of version 4: a `body` section, and agent and env in lists."""
    return "body" in data or any(_is_wrapped(data.get(key)) for key in ("agent", "env"))


def _is_wrapped(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _part(data: dict[str, Any], *path: str) -> dict[str, Any]:
    found: Any = data
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
        found = found[0] if _is_wrapped(found) else found
    return found if isinstance(found, dict) else {}


def unwrapped(document: Document) -> Document:
    """The document with lists of one agent and of one env replaced by what is in them.

    One of the older form has a `body` afterwards, so that it can still be told.
    """
    if is_older_form(document.data) and "body" not in document.data:
        document = replace(document, data={**document.data, "body": {}})
    for path in WRAPPED:
        value = lookup(document.data, path)
        if _is_wrapped(value) and len(value) == 1:
            item, length = (*path, 0), len(path)
            inner = {
                (*path, *at[length + 1 :]): mark for at, mark in document.marks.items() if at[: length + 1] == item
            }
            outer = {at: mark for at, mark in document.marks.items() if at[: length + 1] != item}
            document = replace(document, data=put(document.data, path, value[0]), marks={**inner, **outer})
    return document


TEXT_OR_LAST_COMMA = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|,(?=\s*[}\]])', re.DOTALL)


def without_last_commas(source: Source) -> Source:
    """The text with a space for each such comma, so that every place stays where it was."""
    text = TEXT_OR_LAST_COMMA.sub(lambda found: " " if found[0] == "," else found[0], source.text)
    return replace(source, text=text)


def holds_slm(data: object) -> bool:
    """Whether a file's data is an SLM-Lab spec or has one among its named specs."""
    return is_slm(data) or (isinstance(data, dict) and any(is_slm(each) for each in data.values()))


def _sections(top: Section) -> None:
    conversion = top.conversion
    for key in ("agent", "env", "meta"):
        if isinstance(top.need(key), list):
            top.refuse(key, "holds several, which has no counterpart: one agent learns in one environment")
            return
    algorithm = top.below("agent").below("algorithm")
    name = algorithm.need("name")
    rows = conversion.table.chosen(conversion.kind)
    if not conversion.kind:
        rows = tuple(row for row in rows if row.parts[0] in ("name", "env", "meta"))
        near = nearest(str(name), NAMES)
        hint = f"there are {', '.join(NAMES)}" + (f"; did you mean {near}?" if near else "")
        if name is not None:
            algorithm.refuse("name", "has no counterpart in this version", hint)
        top.get("search")
    read(top, rows)
    if conversion.kind:
        top.close_all()


SEARCH = worked("search.*", "what a search varies, and how it is drawn", "search", dimensions(_sections))
TABLE = Table((*ROWS, SEARCH), kind_of, ignores=True)
convert = Converter("SLM-Lab", _sections, TABLE, unwrapped)
