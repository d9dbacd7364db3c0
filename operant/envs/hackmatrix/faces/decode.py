"""Arrays from the observation of the JSON-lines face, whoever wrote it."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.envs.hackmatrix.constants import (
    CH_BLOCK,
    CH_CENTRE,
    CH_CREDITS,
    CH_ENEMY,
    CH_ENEMY_HP,
    CH_ENERGY,
    CH_EXIT,
    CH_FROM_SIPHON,
    CH_PICKUP,
    CH_POINTS,
    CH_PROGRAM,
    CH_SIPHONED,
    CH_SPAWN,
    CH_STUNNED,
    CH_TRANSMISSION,
    CHANNELS,
    ENEMY_NAMES,
    FIRST_PROGRAM,
    PROGRAM_COUNT,
    SIZE,
)
from operant.envs.hackmatrix.reference.observation import Arrays

NONSENSE = (KeyError, TypeError, ValueError, IndexError)
BLOCK_TYPES = ("data", "program", "question")


def decode(obs: dict[str, Any]) -> Arrays:
    """The arrays that say the same; one of `NONSENSE` is raised if `obs` is no observation."""
    programs = marked([action - FIRST_PROGRAM for action in obs["ownedPrograms"]], PROGRAM_COUNT)
    grid = np.zeros((SIZE, SIZE, CHANNELS), np.float32)
    for row in obs["cells"]:
        for cell in row:
            _paint(grid[cell["row"], cell["col"]], cell)
    return Arrays(np.array(_player(obs), np.float32), programs.astype(np.int32), grid)


def marked(indices: list[int], size: int) -> np.ndarray:
    """Booleans that are true at these indices."""
    flags = np.zeros(size, bool)
    if any(not 0 <= index < size for index in indices):
        raise IndexError(f"{indices} are not all in 0..{size - 1}")
    flags[indices] = True
    return flags


def _player(obs: dict[str, Any]) -> list[float]:
    return [
        obs["playerRow"] / 5,
        obs["playerCol"] / 5,
        obs["playerHP"] / 3,
        min(obs["credits"] / 50, 1),
        min(obs["energy"] / 50, 1),
        (obs["stage"] - 1) / 7,
        obs["dataSiphons"] / 10,
        (obs["baseAttack"] - 1) / 2,
        obs["showActivated"],
        obs["scheduledTasksDisabled"],
    ]


def _paint(channels: np.ndarray, cell: dict[str, Any]) -> None:
    if enemy := cell.get("enemy"):
        channels[CH_ENEMY + ENEMY_NAMES.index(enemy["type"])] = 1
        channels[CH_ENEMY_HP] = enemy["hp"] / 3
        channels[CH_STUNNED] = enemy["isStunned"]
        channels[CH_FROM_SIPHON] = enemy["spawnedFromSiphon"]
    if block := cell.get("block"):
        _paint_block(channels, block)
    if transmission := cell.get("transmission"):
        channels[CH_TRANSMISSION] = min(transmission["turnsUntilSpawn"] / 4, 1)
    channels[CH_CREDITS] = (cell.get("credits") or 0) / 3
    channels[CH_ENERGY] = (cell.get("energy") or 0) / 3
    channels[CH_PICKUP] = cell["isDataSiphon"]
    channels[CH_EXIT] = cell["isExit"]
    channels[CH_CENTRE] = cell["siphonCenter"]


def _paint_block(channels: np.ndarray, block: dict[str, Any]) -> None:
    kind = block["blockType"]
    channels[CH_BLOCK + BLOCK_TYPES.index(kind)] = 1
    channels[CH_SIPHONED] = block["isSiphoned"]
    if kind == "question":
        return
    channels[CH_SPAWN] = block["transmissionSpawnCount"] / 9
    if kind == "data":
        channels[CH_POINTS] = block["points"] / 9
    else:
        channels[CH_PROGRAM + block["programActionIndex"] - FIRST_PROGRAM] = 1
