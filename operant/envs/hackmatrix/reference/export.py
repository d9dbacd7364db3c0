"""The whole game as plain data, so that another form can be compared with it field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from operant.envs.hackmatrix.reference.board import place
from operant.envs.hackmatrix.reference.draws import Threefry
from operant.envs.hackmatrix.reference.game import Game
from operant.envs.hackmatrix.reference.state import Cell, Enemy, Player, Snapshot, State, Transmission


def export(game: Game) -> dict[str, Any]:
    """Every field of the state, with rows and columns, dictionaries and lists of numbers, flags and names."""
    source = game.source
    return export_state(game.state) | {
        "history": [_undoable(one) for one in game.state.history],
        "key": source.key if isinstance(source, Threefry) else None,
        "event": source.event,
        "steps": game.steps,
    }


def export_state(state: State) -> dict[str, Any]:
    """The state without its history."""
    return _undoable(state) | {
        "stage": state.stage,
        "exit": place(state.exit),
        "skip": state.skip,
        "interval": state.interval,
        "next_task": state.next_task,
        "pending": state.pending,
    }


def _undoable(state: State | Snapshot) -> dict[str, Any]:
    return {
        "player": _player(state.player),
        "turn": state.turn,
        "owned": list(state.owned),
        "enemies": _enemies(state.enemies),
        "transmissions": _transmissions(state.transmissions),
        "cells": [_cell(cell) for cell in state.cells],
        "show": state.show,
        "calm": state.calm,
        "attack_uses": state.attack_uses,
    }


def _player(player: Player) -> dict[str, int]:
    row, col = place(player.at)
    return {
        "row": row,
        "col": col,
        "hp": player.hp,
        "credits": player.credits,
        "energy": player.energy,
        "siphons": player.siphons,
        "score": player.score,
        "attack": player.attack,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """A cell; what a block alone has is 0 elsewhere, and -1 where there is no program."""
    block = cell.block
    return {
        "content": "block" if block else cell.content,
        "points": block.points if block else 0,
        "program": -1 if block is None or block.program is None else block.program,
        "spawn": block.spawn if block else 0,
        "question": bool(block and block.question),
        "credits": cell.credits,
        "energy": cell.energy,
        "siphoned": cell.siphoned,
        "centre": cell.centre,
    }


def _enemies(enemies: Iterable[Enemy]) -> list[dict[str, Any]]:
    return [
        {
            "kind": enemy.kind,
            "at": place(enemy.at),
            "hp": enemy.hp,
            "disabled": enemy.disabled,
            "stunned": enemy.stunned,
            "from_siphon": enemy.from_siphon,
            "from_task": enemy.from_task,
            "seen_at": place(enemy.seen_at),
        }
        for enemy in enemies
    ]


def _transmissions(transmissions: Iterable[Transmission]) -> list[dict[str, Any]]:
    return [
        {
            "at": place(one.at),
            "turns": one.turns,
            "kind": one.kind,
            "from_siphon": one.from_siphon,
            "from_task": one.from_task,
        }
        for one in transmissions
    ]
