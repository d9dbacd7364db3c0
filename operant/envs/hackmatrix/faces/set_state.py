"""Builds the game that a state of the JSON-lines face describes."""

from __future__ import annotations

from typing import Any

from operant.envs.hackmatrix.constants import (
    ACTION_COUNT,
    ENEMY_NAMES,
    FIRST_PROGRAM,
    MAX_ENEMIES,
    MAX_HP,
    MAX_TRANSMISSIONS,
    PROGRAM_NAMES,
    STAGES,
    START_ATTACK,
    START_HP,
)
from operant.envs.hackmatrix.faces.request_schema import STATE, demand
from operant.envs.hackmatrix.reference.board import number, on_board
from operant.envs.hackmatrix.reference.state import Block, Cell, Enemy, Player, State, Transmission

EXIT = (5, 5)
DEFAULT_POINTS = 5
DEFAULT_PROGRAM_SPAWN = 2
ALIASES = {
    "siphplus": "siph+",
    "siph_plus": "siph+",
    "dbom": "d_bom",
    "d_bomb": "d_bom",
    "antiv": "anti-v",
    "anti_v": "anti-v",
    "atkplus": "atk+",
    "atk_plus": "atk+",
}


class Impossible(ValueError):
    """The state is well-formed, but no game can be so."""


def read_state(given: Any) -> State:
    """The game that `given` describes; `Malformed` or `Impossible` if there is none."""
    demand(given, STATE)
    state = State(_player(given["player"]))
    state.enemies = [_enemy(each) for each in _known(given, "enemies", "type")]
    state.transmissions = [_transmission(each) for each in _known(given, "transmissions", "enemyType")]
    for block in _get(given, "blocks", []):
        _place_block(state, block)
    for resource in _get(given, "resources", []):
        _place_resource(state, resource)
    owned = [action - FIRST_PROGRAM for action in _get(given, "ownedPrograms", [])]
    state.owned = list(dict.fromkeys(p for p in owned if 0 <= p < ACTION_COUNT - FIRST_PROGRAM))
    state.stage, state.turn = _get(given, "stage", 1), _get(given, "turn", 0)
    state.show, state.calm = _get(given, "showActivated", False), _get(given, "scheduledTasksDisabled", False)
    state.exit = number(*EXIT)
    state.cells[state.exit] = state.cells[state.exit]._replace(content="exit")
    _refuse_excess(state)
    return state


def _get(fields: dict[str, Any], key: str, default: Any) -> Any:
    """The value of `key`; the default where it is absent or null."""
    value = fields.get(key)
    return default if value is None else value


def _known(given: dict[str, Any], key: str, kind: str) -> list[dict[str, Any]]:
    """The entries of a list whose enemy type there is."""
    return [each for each in _get(given, key, []) if each[kind].lower() in ENEMY_NAMES]


def _place_of(fields: dict[str, Any], what: str) -> int:
    row, col = fields["row"], fields["col"]
    if not on_board(row, col):
        raise Impossible(f"{what} at ({row},{col}) is off the board")
    return number(row, col)


def _player(fields: dict[str, Any]) -> Player:
    hp = _get(fields, "hp", START_HP)
    return Player(
        at=_place_of(fields, "player"),
        hp=hp if 0 <= hp <= MAX_HP else MAX_HP,
        credits=_get(fields, "credits", 0),
        energy=_get(fields, "energy", 0),
        siphons=_get(fields, "dataSiphons", 0),
        score=_get(fields, "score", 0),
        attack=_get(fields, "attackDamage", START_ATTACK),
    )


def _enemy(fields: dict[str, Any]) -> Enemy:
    name, at = fields["type"].lower(), _place_of(fields, "enemy")
    if fields["hp"] < 1:
        raise Impossible(f"{name} at ({fields['row']},{fields['col']}) has hp {fields['hp']}")
    return Enemy(
        kind=ENEMY_NAMES.index(name),
        at=at,
        hp=fields["hp"],
        stunned=_get(fields, "stunned", False),
        from_siphon=_get(fields, "spawnedFromSiphon", False),
        from_task=_get(fields, "isFromScheduledTask", False),
        seen_at=at,
    )


def _transmission(fields: dict[str, Any]) -> Transmission:
    kind = ENEMY_NAMES.index(fields["enemyType"].lower())
    return Transmission(_place_of(fields, "transmission"), max(fields["turnsRemaining"], 1), kind)


def _place_block(state: State, fields: dict[str, Any]) -> None:
    if not on_board(fields["row"], fields["col"]):
        return
    at, block = number(fields["row"], fields["col"]), _block(fields)
    cell = state.cells[at] if block is None else state.cells[at]._replace(content=block)
    state.cells[at] = cell._replace(siphoned=cell.siphoned or _get(fields, "siphoned", False))


def _block(fields: dict[str, Any]) -> Block | None:
    """The block; None if its type or its program is unknown."""
    if fields["type"].lower() == "data":
        points = _get(fields, "points", DEFAULT_POINTS)
        return Block(points, None, _get(fields, "spawnCount", points))
    name = _get(fields, "programType", "").lower()
    name = ALIASES.get(name, name)
    if fields["type"].lower() != "program" or name not in PROGRAM_NAMES:
        return None
    return Block(0, PROGRAM_NAMES.index(name), _get(fields, "spawnCount", DEFAULT_PROGRAM_SPAWN))


def _place_resource(state: State, fields: dict[str, Any]) -> None:
    if on_board(fields["row"], fields["col"]):
        at = number(fields["row"], fields["col"])
        state.cells[at] = _with_resource(state.cells[at], fields)


def _with_resource(cell: Cell, fields: dict[str, Any]) -> Cell:
    """The cell with the first that applies of a pickup, credits and energy."""
    if _get(fields, "dataSiphon", False):
        return cell._replace(content="pickup")
    if _get(fields, "credits", 0) > 0:
        return cell._replace(credits=fields["credits"], energy=0)
    if _get(fields, "energy", 0) > 0:
        return cell._replace(credits=0, energy=fields["energy"])
    return cell


def _refuse_excess(state: State) -> None:
    if not 1 <= state.stage <= STAGES:
        raise Impossible(f"stage {state.stage} is not in 1..{STAGES}")
    if len(state.enemies) > MAX_ENEMIES:
        raise Impossible(f"{len(state.enemies)} enemies are more than {MAX_ENEMIES}")
    if len(state.transmissions) > MAX_TRANSMISSIONS:
        raise Impossible(f"{len(state.transmissions)} transmissions are more than {MAX_TRANSMISSIONS}")
