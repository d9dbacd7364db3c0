"""What won games of HackMatrix have in common: programs owned and used, and stages passed by taking a walk back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from operant.envs.hackmatrix.constants import ACTION_NAMES, FIRST_PROGRAM, PROGRAM_NAMES, UNDO
from operant.envs.hackmatrix.reference.game import Game
from operant.envs.hackmatrix.viewer.replay import Replay, read_replays


def explain(folder: Path) -> dict[str, Any]:
    """By player, what its won games tell; each is played again by the reference, which must win it too."""
    return {
        path.stem.removeprefix("won_"): common([tell(replay) for replay in read_replays(path)])
        for path in sorted(folder.glob("won_*.json"))
    }


def tell(replay: Replay) -> dict[str, Any]:
    """One won game, played again: what was owned at the end, what was used, and where it first paid to UNDO."""
    game = Game(replay.seed)
    used: Counter[str] = Counter()
    repeats, undo_at, outcome = 0, None, None
    recalled = False
    for action in replay.actions:
        stage = game.state.stage
        fresh = game.state.turn == 0
        outcome = game.step(action)
        used[ACTION_NAMES[action]] += 1
        if action == FIRST_PROGRAM + UNDO:
            recalled = recalled or fresh
        passed = game.state.stage > stage or outcome.won
        repeats += passed and recalled
        recalled = recalled and not passed
        if undo_at is None and UNDO in game.state.owned:
            undo_at = stage
    if outcome is None or not outcome.won:
        raise ValueError(f"the game of seed {replay.seed} is not won by its replay")
    owned = [PROGRAM_NAMES[program] for program in game.state.owned]
    return {"steps": len(replay.actions), "owned": owned, "used": used, "repeats": repeats, "undo_at": undo_at}


def common(games: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over won games; `repeats` are stages passed through an exit that UNDO had brought back."""
    if not games:
        return {"won": 0}
    owned = Counter(name for game in games for name in game["owned"])
    used = Counter(name for game in games for name in game["used"])
    return {
        "won": len(games),
        "steps": mean(game["steps"] for game in games),
        "stages_passed_again": dict(sorted(Counter(game["repeats"] for game in games).items())),
        "undo_siphoned_in_stage": dict(Counter(str(game["undo_at"]) for game in games).most_common()),
        "owned": {name: round(number / len(games), 3) for name, number in owned.most_common()},
        "used": {name: round(number / len(games), 3) for name, number in used.most_common()},
    }
