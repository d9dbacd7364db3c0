"""Whether a board, as the JSON-lines face shows it, is one that a new stage can have."""

from __future__ import annotations

from typing import Any

from operant.envs.hackmatrix.constants import (
    CORNERS,
    FIRST_PROGRAM,
    MAX_BLOCKS,
    MAX_POINTS,
    MIN_BLOCKS,
    PROGRAMS,
)
from operant.envs.hackmatrix.reference.board import number
from operant.envs.hackmatrix.reference.stages import is_connected, is_siphonable


def faults_of_board(obs: dict[str, Any]) -> list[str]:
    """Every rule of a new stage's board that this one breaks."""
    cells = {(cell["row"], cell["col"]): cell for row in obs["cells"] for cell in row}
    blocks = {at: cell["block"] for at, cell in cells.items() if "block" in cell}
    player = obs["playerRow"], obs["playerCol"]
    return [
        *_faults_of_corners(cells, player),
        *_faults_of_places(cells, blocks),
        *_faults_of_contents(list(blocks.values())),
        *_faults_of_resources(cells),
        *_faults_of_transmissions(cells, obs["stage"], player),
    ]


def _faults_of_corners(cells: dict[tuple[int, int], dict[str, Any]], player: tuple[int, int]) -> list[str]:
    exits = [at for at, cell in cells.items() if cell["isExit"]]
    pickups = {at for at, cell in cells.items() if cell["isDataSiphon"]}
    if len(exits) != 1 or exits[0] not in CORNERS or exits[0] == player:
        return [f"exits at {exits}"]
    rest = set(CORNERS) - {player, exits[0]}
    return [] if pickups == rest else [f"pickups at {sorted(pickups)}, not at {sorted(rest)}"]


def _faults_of_places(cells: dict[tuple[int, int], dict[str, Any]], blocks: dict[tuple[int, int], Any]) -> list[str]:
    found: list[str] = []
    if blocks and not MIN_BLOCKS <= len(blocks) <= MAX_BLOCKS:
        found.append(f"{len(blocks)} blocks")
    found += [f"a block on the corner {at}" for at in blocks if at in CORNERS]
    walls = {number(*at) for at in blocks}
    exits = [number(*at) for at, cell in cells.items() if cell["isExit"]]
    if not all(is_connected(walls, at) for at in exits):
        found.append("the open cells are not connected")
    if not is_siphonable(walls):
        found.append("a block has no open cell beside it")
    return found


def _faults_of_contents(blocks: list[dict[str, Any]]) -> list[str]:
    found = [f"siphoned {block}" for block in blocks if block["isSiphoned"]]
    for block in blocks:
        if block["blockType"] == "data" and not 1 <= block["points"] == block["transmissionSpawnCount"] <= MAX_POINTS:
            found.append(f"{block}")
    programs = [block for block in blocks if block["blockType"] == "program"]
    for block in programs:
        if block["transmissionSpawnCount"] != PROGRAMS[block["programActionIndex"] - FIRST_PROGRAM].spawn:
            found.append(f"{block}")
    if len({block["programActionIndex"] for block in programs}) != len(programs):
        found.append("one program in two blocks")
    return found


def _faults_of_resources(cells: dict[tuple[int, int], dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for at, cell in cells.items():
        amounts = [cell[key] for key in ("credits", "energy") if key in cell]
        bare = cell["isExit"] or "block" in cell
        if len(amounts) != (0 if bare else 1) or any(not 1 <= amount <= 3 for amount in amounts):
            found.append(f"resources {amounts} on {at}")
        if cell["siphonCenter"]:
            found.append(f"a siphon's centre on {at}")
    return found


def _faults_of_transmissions(
    cells: dict[tuple[int, int], dict[str, Any]], stage: int, player: tuple[int, int]
) -> list[str]:
    sent = {at: cell["transmission"] for at, cell in cells.items() if "transmission" in cell}
    found = [f"{len(sent)} transmissions in stage {stage}"] if len(sent) < stage else []
    return found + [f"a transmission on {at}" for at in sent if at == player or "block" in cells[at]]
