"""The shape of requests to the JSON-lines face: which fields are known, of what type, and which must be there."""

from __future__ import annotations

from typing import Any, NamedTuple

INTEGERS = range(-(2**63), 2**63)


class Malformed(ValueError):
    """A known field is missing or of the wrong type."""


class Shape(NamedTuple):
    """The known fields of an object, by type: int, bool, str, another shape, or a list of one of these.

    A field that is null counts as absent. Others than these are ignored.
    """

    required: dict[str, Any]
    optional: dict[str, Any]


_PLACE = {"row": int, "col": int}
_PLAYER: dict[str, Any] = dict.fromkeys(("hp", "credits", "energy", "dataSiphons", "attackDamage", "score"), int)
_ENEMY: dict[str, Any] = dict.fromkeys(("stunned", "spawnedFromSiphon", "isFromScheduledTask"), bool)
_BLOCK = {"points": int, "spawnCount": int, "programType": str, "programActionIndex": int, "siphoned": bool}

STATE = Shape(
    {"player": Shape(_PLACE, _PLAYER)},
    {
        "enemies": [Shape(_PLACE | {"type": str, "hp": int}, _ENEMY)],
        "transmissions": [Shape(_PLACE | {"turnsRemaining": int, "enemyType": str}, {})],
        "blocks": [Shape(_PLACE | {"type": str}, _BLOCK)],
        "resources": [Shape(_PLACE, {"dataSiphon": bool, "credits": int, "energy": int})],
        "ownedPrograms": [int],
        "stage": int,
        "turn": int,
        "showActivated": bool,
        "scheduledTasksDisabled": bool,
    },
)
REQUEST = Shape({"action": str}, {"actionIndex": int, "seed": int, "state": STATE})


def demand(value: Any, shape: Any) -> None:
    """Raise `Malformed` unless `value` has this shape."""
    if isinstance(shape, Shape):
        _demand_object(value, shape)
    elif isinstance(shape, list):
        for each in _instance(value, list):
            demand(each, shape[0])
    else:
        _instance(value, shape)


def _demand_object(value: Any, shape: Shape) -> None:
    fields = _instance(value, dict)
    for key, kind in shape.required.items():
        if fields.get(key) is None:
            raise Malformed(f"{key} is missing")
        demand(fields[key], kind)
    for key, kind in shape.optional.items():
        if fields.get(key) is not None:
            demand(fields[key], kind)


def _instance(value: Any, kind: type) -> Any:
    # True and False are whole numbers to Python, but not here.
    is_kind = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not is_kind or (kind is int and value not in INTEGERS):
        raise Malformed(f"{value!r} is not of type {kind.__name__}")
    return value
