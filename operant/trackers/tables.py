"""Episodes as tables, one for each split: a row per episode, and for language runs the prompt and the completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operant.trackers.tracker import table_key

FIRST = ("frames", "env", "seed", "item", "score", "length", "ended", "error")
PROMPT_ROLES = ("system", "user")


@dataclass(frozen=True)
class Table:
    """Episodes of one split."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def tables(episodes: Sequence[Mapping[str, Any]]) -> dict[str, Table]:
    """The tables of episodes by their keys, such as `episodes/eval`."""
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for episode in episodes:
        by_key.setdefault(table_key(episode), []).append(episode)
    return {key: _table(rows) for key, rows in by_key.items()}


def _table(episodes: Sequence[Mapping[str, Any]]) -> Table:
    """Columns that no episode fills are left out."""
    flat = [_flat(episode) for episode in episodes]
    names = dict.fromkeys((*FIRST, *(name for row in flat for name in row)))
    columns = tuple(name for name in names if any(row.get(name) is not None for row in flat))
    return Table(columns, tuple(tuple(row.get(name) for name in columns) for row in flat))


def _flat(episode: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: episode.get(name) for name in FIRST}
    row |= {f"parts/{name}": value for name, value in episode.get("parts", {}).items()}
    turns = episode.get("turns", [])
    if turns:
        first = next((at for at, turn in enumerate(turns) if turn["role"] not in PROMPT_ROLES), len(turns))
        row |= {"prompt": _text(turns[:first]), "completion": _text(turns[first:])}
    return row


def _text(turns: Sequence[Mapping[str, Any]]) -> str:
    """What was said; who said it too, where several did."""
    if len(turns) == 1:
        return turns[0]["text"]
    return "\n\n".join(f"{turn['role']}: {turn['text']}" for turn in turns)
