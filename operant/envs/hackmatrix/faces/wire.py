"""What the JSON-lines face says: observation, outcome of a step, internal state."""

from __future__ import annotations

from typing import Any

from operant.envs.hackmatrix.constants import (
    ENEMY_NAMES,
    FIRST_PROGRAM,
    PROGRAM_NAMES,
    REWARD_KEYS,
    SIZE,
)
from operant.envs.hackmatrix.reference.board import place
from operant.envs.hackmatrix.reference.game import Outcome
from operant.envs.hackmatrix.reference.observation import hints, visible_enemies, visible_transmissions
from operant.envs.hackmatrix.reference.state import Block, Cell, Enemy, State, Transmission

NO_GAME = {
    "scheduledTaskInterval": 0,
    "nextScheduledTaskTurn": 0,
    "pendingSiphonTransmissions": 0,
    "turnCount": 0,
    "enemies": [],
}


def observation(state: State) -> dict[str, Any]:
    """What the player sees; things that are absent have no key."""
    player = state.player
    row, col = place(player.at)
    return {
        "playerRow": row,
        "playerCol": col,
        "playerHP": player.hp,
        "credits": player.credits,
        "energy": player.energy,
        "stage": state.stage,
        "turn": state.turn,
        "dataSiphons": player.siphons,
        "baseAttack": player.attack,
        "score": player.score,
        "showActivated": state.show,
        "scheduledTasksDisabled": state.calm,
        "ownedPrograms": [FIRST_PROGRAM + program for program in state.owned],
        "cells": _cells(state),
        "cryptogHints": [{"row": row, "col": col} for row, col in map(place, hints(state))],
    }


def outcome(state: State, result: Outcome) -> dict[str, Any]:
    """The reply to a step."""
    flags = {"invalid_action": result.refused, "stage_complete": result.stage_completed, "death": result.died}
    breakdown = {key: result.parts[part] for part, key in REWARD_KEYS.items()}
    info = {name: True for name, holds in flags.items() if holds}
    return {
        "observation": observation(state),
        "reward": result.reward,
        "done": result.done,
        "info": info | {"reward_breakdown": breakdown},
    }


def internal(state: State) -> dict[str, Any]:
    """What the observation does not show: timers, and every enemy, seen or not."""
    return {
        "scheduledTaskInterval": state.interval,
        "nextScheduledTaskTurn": state.next_task,
        "pendingSiphonTransmissions": state.pending,
        "turnCount": state.turn,
        "enemies": [_whole_enemy(enemy) for enemy in state.enemies],
    }


def _whole_enemy(enemy: Enemy) -> dict[str, Any]:
    row, col = place(enemy.at)
    return {
        "row": row,
        "col": col,
        "type": ENEMY_NAMES[enemy.kind],
        "hp": enemy.hp,
        "disabledTurns": enemy.disabled,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
        "isFromScheduledTask": enemy.from_task,
    }


def _cells(state: State) -> list[list[dict[str, Any]]]:
    enemies, transmissions = visible_enemies(state), visible_transmissions(state)
    cells = []
    for at, cell in enumerate(state.cells):
        shown = _cell(at, cell)
        if at in enemies:
            shown["enemy"] = _enemy(enemies[at])
        if at in transmissions:
            shown["transmission"] = _transmission(transmissions[at], state.show)
        cells.append(shown)
    return [cells[start : start + SIZE] for start in range(0, len(cells), SIZE)]


def _cell(at: int, cell: Cell) -> dict[str, Any]:
    row, col = place(at)
    shown: dict[str, Any] = {
        "row": row,
        "col": col,
        "isDataSiphon": cell.content == "pickup",
        "isExit": cell.content == "exit",
        "siphonCenter": cell.centre,
    }
    if cell.block:
        shown["block"] = _block(cell.block, cell.siphoned)
    if cell.credits and (not cell.block or cell.siphoned):
        shown["credits"] = cell.credits
    if cell.energy and (not cell.block or cell.siphoned):
        shown["energy"] = cell.energy
    return shown


def _block(block: Block, siphoned: bool) -> dict[str, Any]:
    if block.question:
        return {"blockType": "question", "isSiphoned": siphoned}
    shown = {"isSiphoned": siphoned, "points": block.points, "transmissionSpawnCount": block.spawn}
    if block.program is None:
        return {"blockType": "data"} | shown
    index, name = FIRST_PROGRAM + block.program, PROGRAM_NAMES[block.program]
    return {"blockType": "program", "programType": name, "programActionIndex": index} | shown


def _enemy(enemy: Enemy) -> dict[str, Any]:
    return {
        "type": ENEMY_NAMES[enemy.kind],
        "hp": enemy.hp,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
    }


def _transmission(one: Transmission, show: bool) -> dict[str, Any]:
    return {"turnsUntilSpawn": one.turns} | ({"enemyType": ENEMY_NAMES[one.kind]} if show else {})
