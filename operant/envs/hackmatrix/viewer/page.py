"""Replays as one page of HTML that needs nothing but a browser: no network, no other file."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.viewer.replay import Frame, Replay, frames
from operant.envs.hackmatrix.viewer.tiles import ENTRIES

SHOWN_CHANCES = 12
_PLACEHOLDER = "{{DATA}}"


def page(replays: list[Replay]) -> str:
    """The page: its template with the frames of all replays inside."""
    cells = _Cells()
    episodes = [_episode(replay, cells) for replay in replays]
    legend = [list(entry) for entry in ENTRIES]
    document = {"actions": ACTION_NAMES, "cells": cells.known, "episodes": episodes, "legend": legend}
    template = files("operant.envs.hackmatrix.viewer").joinpath("page.html").read_text(encoding="utf-8")
    # No text inside may end the script element that holds it.
    return template.replace(_PLACEHOLDER, json.dumps(document, separators=(",", ":")).replace("</", "<\\/"))


class _Cells:
    """The different cells of all frames; a frame names each by its position here."""

    def __init__(self) -> None:
        self.known: list[dict[str, Any]] = []
        self._positions: dict[str, int] = {}

    def position(self, cell: dict[str, Any]) -> int:
        facts = {key: value for key, value in cell.items() if key not in ("row", "col") and value is not False}
        text = json.dumps(facts, sort_keys=True)
        if text not in self._positions:
            self._positions[text] = len(self.known)
            self.known.append(facts)
        return self._positions[text]


def _episode(replay: Replay, cells: _Cells) -> dict[str, Any]:
    shown = list(frames(replay))
    last = shown[-1]
    title = f"seed {replay.seed}: stage {last.obs['stage']}, {last.over or 'not over'}, reward {last.total:.2f}"
    return {"seed": replay.seed, "title": title, "frames": [_frame(frame, cells) for frame in shown]}


def _frame(frame: Frame, cells: _Cells) -> dict[str, Any]:
    obs = frame.obs
    brief = {
        "row": obs["playerRow"],
        "col": obs["playerCol"],
        "hp": obs["playerHP"],
        "credits": obs["credits"],
        "energy": obs["energy"],
        "stage": obs["stage"],
        "turn": obs["turn"],
        "siphons": obs["dataSiphons"],
        "attack": obs["baseAttack"],
        "score": obs["score"],
        "show": obs["showActivated"],
        "calm": obs["scheduledTasksDisabled"],
        "owned": obs["ownedPrograms"],
        "hints": [[hint["row"], hint["col"]] for hint in obs["cryptogHints"]],
        "cells": [cells.position(cell) for row in obs["cells"] for cell in row],
        "action": frame.action,
        "reward": round(frame.reward, 6),
        "total": round(frame.total, 6),
        "events": frame.events,
        "over": frame.over,
        "chances": [[action, round(chance, 4)] for action, chance in frame.likeliest(SHOWN_CHANCES)],
    }
    return brief if frame.value is None else brief | {"value": round(frame.value, 4)}
