"""What each action would do, and why one cannot be done, as text."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import (
    ACTION_NAMES,
    ANTI_V,
    ATK_PLUS,
    CALM,
    COL,
    CRASH,
    D_BOM,
    DEBUG,
    DELAY,
    ENEMY_NAMES,
    EXCH,
    FIRST_PROGRAM,
    HACK,
    POLY,
    PROGRAMS,
    PULL,
    PUSH,
    REDUC,
    RESET,
    ROW,
    SCORE,
    SHOW,
    SIPH_PLUS,
    SIPHON,
    STEP,
    UNDO,
    WAIT,
    WARP,
)
from operant.envs.hackmatrix.reference.board import BESIDE, place
from operant.envs.hackmatrix.reference.game import Game
from operant.envs.hackmatrix.reference.moves import find_target
from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission

EFFECTS = {
    PUSH: "push every enemy a cell away from you",
    PULL: "pull every enemy a cell towards you",
    CRASH: "clear the eight cells around you of blocks, enemies and transmissions",
    WARP: "jump onto a random enemy or transmission and destroy it",
    POLY: "turn every enemy into another type",
    WAIT: "let a turn pass",
    DEBUG: "hit every enemy that stands on a block",
    ROW: "hit every enemy in your row",
    COL: "hit every enemy in your column",
    UNDO: "go back to the start of the turn",
    STEP: "the enemies miss their next turn",
    SIPH_PLUS: "one more data siphon",
    EXCH: "four energy for four credits",
    SHOW: "see cryptogs and what transmissions bring, for this stage",
    RESET: "back to 3 hp",
    CALM: "no scheduled tasks for this stage",
    D_BOM: "blow up the nearest daemon and hit those around it",
    DELAY: "three more turns until transmissions hatch",
    ANTI_V: "hit every virus",
    SCORE: "points: 8 less the stage",
    REDUC: "every unsiphoned block calls one transmission less",
    ATK_PLUS: "one more attack damage",
    HACK: "hit every enemy on a siphoned cell",
}
NEEDS = {
    PUSH: "an enemy",
    PULL: "an enemy",
    CRASH: "a block, enemy or transmission in the eight cells around you",
    WARP: "an enemy or a transmission",
    POLY: "an enemy",
    DEBUG: "an enemy on a block",
    ROW: "an enemy in your row",
    COL: "an enemy in your column",
    UNDO: "a turn to go back to",
    SHOW: "SHOW to be off",
    RESET: "less than 3 hp",
    CALM: "CALM to be off",
    D_BOM: "a daemon",
    DELAY: "a transmission",
    ANTI_V: "a virus",
    SCORE: "a stage before the last",
    REDUC: "an unsiphoned block that still calls transmissions",
    ATK_PLUS: "to have been run less than twice in this stage",
    HACK: "a siphoned cell",
}


def cost(program: int) -> str:
    """`2c 2e` for two credits and two energy; `free` for nothing."""
    price = PROGRAMS[program]
    words = [f"{amount}{unit}" for amount, unit in ((price.credits, "c"), (price.energy, "e")) if amount]
    return " ".join(words) or "free"


def prospect(game: Game, action: int) -> str:
    """What a legal action would do."""
    if action < SIPHON:
        return _ahead(game.state, action)
    if action == SIPHON:
        return "siphon your cell and its four neighbours"
    program = action - FIRST_PROGRAM
    return f"{EFFECTS[program]} ({cost(program)})"


def _ahead(state: State, direction: int) -> str:
    target = find_target(state, direction)
    if isinstance(target, Transmission):
        return f"attack the transmission at {_cell(target.at)}"
    if isinstance(target, Enemy):
        return f"attack the {ENEMY_NAMES[target.kind]} at {_cell(target.at)}"
    ahead = BESIDE[state.player.at][direction]
    assert ahead is not None, "a legal direction has a cell"
    return f"go to {_cell(ahead)}" + (", the exit" if state.cells[ahead].content == "exit" else "")


def _cell(at: int) -> str:
    return "({},{})".format(*place(at))


def why_not(game: Game, action: int) -> str:
    """Why an action that is not legal cannot be done."""
    if action < SIPHON:
        beyond = BESIDE[game.state.player.at][action] is None
        return "that is beyond the edge" if beyond else "a block is in the way"
    if action == SIPHON:
        return "you have no data siphon"
    return _why_not_run(game.state, action - FIRST_PROGRAM)


def _why_not_run(state: State, program: int) -> str:
    price, player, name = PROGRAMS[program], state.player, ACTION_NAMES[program + FIRST_PROGRAM]
    if program not in state.owned:
        return f"you do not own {name}"
    if player.credits < price.credits or player.energy < price.energy:
        return f"{name} costs {cost(program)}, and you have {player.credits}c {player.energy}e"
    return f"{name} needs {NEEDS[program]}"
