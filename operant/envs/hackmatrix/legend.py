"""What the pictures mean: cells as examples, who stands there, and words."""

from __future__ import annotations

from typing import Any

_PLAIN: dict[str, Any] = {"isExit": False, "isDataSiphon": False, "siphonCenter": False}
_ENEMY = {"hp": 2, "isStunned": False}
_DATA = {"blockType": "data", "isSiphoned": False, "points": 5, "transmissionSpawnCount": 4}

# a cell of the observation, the hp of a player on it, and what it shows
ENTRIES: tuple[tuple[dict[str, Any], int | None, str], ...] = (
    (_PLAIN, 3, "you"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "virus"}}, None, "virus"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "daemon", "hp": 3}}, None, "daemon"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "glitch"}}, None, "glitch"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "cryptog"}}, None, "cryptog"),
    (_PLAIN | {"transmission": {"turnsUntilSpawn": 1}}, None, "hatches\nin 1 turn"),
    (_PLAIN | {"block": _DATA}, None, "5 points,\ncalls 4"),
    (_PLAIN | {"isDataSiphon": True, "credits": 2}, None, "siphon,\ncredits"),
    (_PLAIN | {"energy": 3}, None, "energy"),
)
