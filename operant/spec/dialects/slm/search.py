"""The `search` block: each dimension moves to the native setting that holds the same value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from operant.spec.dialects.ledger import Ledger
from operant.spec.document import KeyPath
from operant.spec.errors import dotted

GRID = "grid_search"


def search(ledger: Ledger) -> None:
    """Take over a search block, if there is one."""
    block = ledger.theirs.data.get("search")
    if not isinstance(block, dict):
        return
    for at, body in _entries(block, ("search",)):
        path, _, kind = dotted(at[1:]).partition("__")
        home = ledger.homes.get(tuple(part for part in path.split(".") if part != "0"))
        if home is None or not kind:
            ledger.lose(at, f"cannot be searched: no one setting here is {path}" if kind else "names no distribution")
            continue
        if kind == GRID:
            ledger.remark(at, "its values are drawn by `choice`, not tried in turn")
        ledger.set(("search", f"{dotted(home)}__{'choice' if kind == GRID else kind}"), body, at)


def _entries(block: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The dimensions of a flat or nested block, with their places."""
    for key, body in block.items():
        if isinstance(body, dict) and "__" not in key:
            yield from _entries(body, (*at, key))
        else:
            yield (*at, key), body
