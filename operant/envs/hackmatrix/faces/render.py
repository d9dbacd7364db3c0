"""The board as text, with colours or without, drawn from what the player sees.

All drawing starts from the observation of the JSON-lines face, so that a game in another process can
be drawn as well. Row 5 is at the top, as on the screen of the game.
"""

from __future__ import annotations

from typing import Any

from operant.envs.hackmatrix.constants import ACTION_NAMES, MAX_HP, SIZE, STAGES
from operant.envs.hackmatrix.faces.wire import observation
from operant.envs.hackmatrix.reference.state import State

WIDTH = 10  # of a cell, in characters
LEGEND = (
    "@ you   V2 virus with 2 hp   D daemon   G glitch   C cryptog   V2z stunned",
    "C? cryptog last seen here   ~1 transmission: hatches in 1 turn",
    "[5]4 block: 5 points, calls 4 transmissions   [warp]5 a program   [?] unknown",
    "(5) siphoned block   c2 credits   e3 energy   S data siphon   x siphoned here",
)

_RESET = "\x1b[0m"
_STYLES = {
    "player": "\x1b[1;96m",
    "virus": "\x1b[1;91m",
    "daemon": "\x1b[1;38;5;208m",
    "glitch": "\x1b[1;95m",
    "cryptog": "\x1b[1;92m",
    "transmission": "\x1b[1m",
    "hint": "\x1b[2;92m",
    "data": "\x1b[97;48;5;24m",
    "program": "\x1b[97;48;5;54m",
    "question": "\x1b[97;48;5;94m",
    "siphoned": "\x1b[38;5;248;48;5;238m",
    "credits": "\x1b[33m",
    "energy": "\x1b[94m",
    "pickup": "\x1b[1;96m",
    "exit": "\x1b[1;30;42m",
    "centre": "\x1b[2m",
    "frame": "\x1b[38;5;240m",
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
}

Token = tuple[str, str]


def ansi(state: State, colour: bool = True) -> str:
    """A game's status, board and legend."""
    obs = observation(state)
    return "\n".join([*status(obs, colour), *board(obs, colour), *LEGEND])


def paint(text: str, style: str, colour: bool = True) -> str:
    """`text` in the colours of `style`, or as it is."""
    return f"{_STYLES[style]}{text}{_RESET}" if colour else text


def status(obs: dict[str, Any], colour: bool = True) -> list[str]:
    """Two lines on the player."""
    flags = [name for name, key in (("SHOW", "showActivated"), ("CALM", "scheduledTasksDisabled")) if obs[key]]
    hearts = "#" * obs["playerHP"] + "." * (MAX_HP - obs["playerHP"])
    first = [
        paint(f"stage {obs['stage']}/{STAGES}", "bold", colour),
        f"turn {obs['turn']}",
        paint(f"hp {hearts}", "virus" if obs["playerHP"] == 1 else "bold", colour),
        paint(f"score {obs['score']}", "bold", colour),
        paint(f"credits {obs['credits']}", "credits", colour),
        paint(f"energy {obs['energy']}", "energy", colour),
        paint(f"siphons {obs['dataSiphons']}", "pickup", colour),
        f"attack {obs['baseAttack']}",
        *flags,
    ]
    programs = " ".join(ACTION_NAMES[action] for action in obs["ownedPrograms"]) or "none yet"
    return ["  ".join(first), f"programs: {programs}"]


def board(obs: dict[str, Any], colour: bool = True, compact: bool = False) -> list[str]:
    """The 36 cells, each of two lines: above who is there, below what; `compact` without lines between rows."""
    edge = paint(f"  +{'+'.join(['-' * WIDTH] * SIZE)}+", "frame", colour)
    lines = ["  " + "".join(f"{col:^{WIDTH + 1}}" for col in range(SIZE)).rstrip()]
    for row in reversed(range(SIZE)):
        if row == SIZE - 1 or not compact:
            lines.append(edge)
        cells = obs["cells"][row]
        lines.append(_line(f"{row} ", [_movers(obs, cell) for cell in cells], cells, colour))
        lines.append(_line("  ", [_ground(cell) for cell in cells], cells, colour))
    return [*lines, edge]


def rows(obs: dict[str, Any]) -> list[str]:
    """The 36 cells in few characters: a line for each row, its cells in order, a point for an empty one."""
    found = [f"you ({obs['playerRow']},{obs['playerCol']})"]
    lines = []
    for row in reversed(range(SIZE)):
        cells = obs["cells"][row]
        words = [" ".join(word for _, word in [*_movers(obs, cell), *_ground(cell)]) or "." for cell in cells]
        lines.append(f"{row}: {' | '.join(words)}")
        found += [f"exit ({row},{cell['col']})" for cell in cells if cell["isExit"]]
    return [", ".join(found), *lines]


def _line(margin: str, tokens: list[list[Token]], cells: list[dict[str, Any]], colour: bool) -> str:
    bar = paint("|", "frame", colour)
    filled = [_fill(each, _backdrop(cell), colour) for each, cell in zip(tokens, cells, strict=True)]
    return f"{margin}{bar}{bar.join(filled)}{bar}"


def _fill(tokens: list[Token], backdrop: str | None, colour: bool) -> str:
    """One line of a cell: its tokens, and blanks up to its width."""
    text = " ".join(paint(word, style, colour) for style, word in tokens)
    length = len(" ".join(word for _, word in tokens))
    blanks = " " * max(WIDTH - 1 - length, 0)
    if backdrop is None or not colour:
        return f" {text}{blanks}"
    back = _STYLES[backdrop]
    return f"{back} {text.replace(_RESET, _RESET + back)}{blanks}{_RESET}"


def _backdrop(cell: dict[str, Any]) -> str | None:
    """Walls are coloured over the whole cell."""
    if "block" in cell:
        return "siphoned" if cell["block"]["isSiphoned"] else cell["block"]["blockType"]
    return None


def _movers(obs: dict[str, Any], cell: dict[str, Any]) -> list[Token]:
    tokens: list[Token] = []
    if (cell["row"], cell["col"]) == (obs["playerRow"], obs["playerCol"]):
        tokens.append(("player", "@"))
    if enemy := cell.get("enemy"):
        stun = "z" if enemy["isStunned"] else ""
        tokens.append((enemy["type"], f"{enemy['type'][0].upper()}{enemy['hp']}{stun}"))
    if one := cell.get("transmission"):
        tokens.append(("transmission", f"~{one['turnsUntilSpawn']}{one.get('enemyType', '')[:1].upper()}"))
    if {"row": cell["row"], "col": cell["col"]} in obs["cryptogHints"]:
        tokens.append(("hint", "C?"))
    return tokens


def _ground(cell: dict[str, Any]) -> list[Token]:
    tokens: list[Token] = []
    if block := cell.get("block"):
        tokens.append((_backdrop(cell) or "data", block_text(block)))
    if cell["isExit"]:
        tokens.append(("exit", "EXIT"))
    if cell["isDataSiphon"]:
        tokens.append(("pickup", "S"))
    if "credits" in cell:
        tokens.append(("credits", f"c{cell['credits']}"))
    if "energy" in cell:
        tokens.append(("energy", f"e{cell['energy']}"))
    if cell["siphonCenter"]:
        tokens.append(("centre", "x"))
    return tokens


def block_text(block: dict[str, Any]) -> str:
    """`[5]4` for five points that call four transmissions, `[warp]5`, `[?]`; in round brackets once siphoned."""
    if block["blockType"] == "question":
        content, spawn = "?", ""
    else:
        content = str(block["points"]) if block["blockType"] == "data" else block["programType"]
        spawn = str(block["transmissionSpawnCount"] or "")
    return f"({content})" if block["isSiphoned"] else f"[{content}]{spawn}"
