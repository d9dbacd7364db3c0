"""The game as a picture: the board with its legend, the player, the policy's outputs and the events."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw

from operant.envs.hackmatrix.constants import ACTION_NAMES, DELTAS, MAX_HP, SIPHON, SIZE, STAGES
from operant.envs.hackmatrix.viewer.replay import WON, Frame
from operant.envs.hackmatrix.viewer.tiles import BACKGROUND, COLOURS, ENTRIES, FAINT, INK, SIDE, font, tile

WIDTH, HEIGHT = 912, 624  # both divide by 16, as video encoders require
_LEFT, _TOP = 28, 10
_BOARD = SIZE * SIDE
_PANEL = _LEFT + _BOARD + 24
_CHANCES = 7
_LEGEND_KEY = 42
_COLUMNS = (
    ("credits", "credits", COLOURS["credits"]),
    ("energy", "energy", COLOURS["energy"]),
    ("dataSiphons", "siphons", COLOURS["pickup"]),
    ("baseAttack", "attack", INK),
    ("score", "score", INK),
)


def picture(frame: Frame, caption: str = "") -> Image.Image:
    """One frame of a replay."""
    image = _canvas().copy()
    pen = ImageDraw.Draw(image)
    _draw_board(image, frame.obs)
    if frame.action is not None and frame.action < SIPHON:
        _draw_arrow(pen, frame.obs, frame.action)
    _draw_panel(pen, frame, caption)
    return image


@lru_cache(maxsize=1)
def _canvas() -> Image.Image:
    """What is the same in every picture."""
    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(image)
    for k in range(SIZE):
        pen.text((14, _TOP + (SIZE - 1 - k + 0.5) * SIDE), str(k), FAINT, font(15), anchor="mm")
        pen.text((_LEFT + (k + 0.5) * SIDE, _TOP + _BOARD + 11), str(k), FAINT, font(15), anchor="mm")
    _draw_legend(image, pen)
    return image


def _corner(row: int, col: int) -> tuple[int, int]:
    """Where a cell's picture goes; row 0 is at the bottom."""
    return _LEFT + col * SIDE, _TOP + (SIZE - 1 - row) * SIDE


def _draw_board(image: Image.Image, obs: dict[str, Any]) -> None:
    hints = [(hint["row"], hint["col"]) for hint in obs["cryptogHints"]]
    for row in obs["cells"]:
        for cell in row:
            at = cell["row"], cell["col"]
            here = at == (obs["playerRow"], obs["playerCol"])
            image.paste(tile(cell, obs["playerHP"] if here else None, at in hints), _corner(*at))


def _draw_arrow(pen: ImageDraw.ImageDraw, obs: dict[str, Any], direction: int) -> None:
    """Where the coming action goes."""
    rows, cols = DELTAS[direction]
    left, top = _corner(obs["playerRow"], obs["playerCol"])
    x, y = left + SIDE / 2 + cols * SIDE * 0.46, top + SIDE / 2 - rows * SIDE * 0.46
    turn = {(1, 0): 0, (-1, 0): 180, (0, -1): 90, (0, 1): 270}[rows, cols]
    pen.regular_polygon((x, y, 13), 3, turn, INK, BACKGROUND)


def _draw_legend(image: Image.Image, pen: ImageDraw.ImageDraw) -> None:
    x = _LEFT
    for cell, player, words in ENTRIES:
        image.paste(tile(cell, player, False).resize((_LEGEND_KEY, _LEGEND_KEY)), (x, HEIGHT - _LEGEND_KEY - 10))
        pen.text((x + _LEGEND_KEY + 4, HEIGHT - _LEGEND_KEY / 2 - 10), words, FAINT, font(12), anchor="lm", spacing=2)
        x += _LEGEND_KEY + 12 + int(max(pen.textlength(word, font(12)) for word in words.split("\n")))


def _draw_panel(pen: ImageDraw.ImageDraw, frame: Frame, caption: str) -> None:
    y = _draw_status(pen, frame, caption)
    y = _draw_policy(pen, frame, y)
    _draw_news(pen, frame, y)


def _draw_status(pen: ImageDraw.ImageDraw, frame: Frame, caption: str) -> int:
    obs = frame.obs
    pen.text((_PANEL, 12), f"Stage {obs['stage']} of {STAGES}", INK, font(26))
    pen.text((WIDTH - 16, _TOP + _BOARD + 11), caption, FAINT, font(14), anchor="rm")
    for k in range(MAX_HP):
        fill = COLOURS["virus"] if k < obs["playerHP"] else "#2a3345"
        pen.rounded_rectangle((_PANEL + 34 * k, 50, _PANEL + 34 * k + 28, 60), 4, fill)
    pen.text((_PANEL + 108, 55), f"{obs['playerHP']} hp    turn {obs['turn']}", FAINT, font(15), anchor="lm")
    flags = [word for word, key in (("SHOW", "showActivated"), ("CALM", "scheduledTasksDisabled")) if obs[key]]
    pen.text((WIDTH - 16, 55), " ".join(flags), COLOURS["cryptog"], font(15), anchor="rm")
    for k, (key, label, ink) in enumerate(_COLUMNS):
        pen.text((_PANEL + 66 * k, 72), str(obs[key]), ink, font(20))
        pen.text((_PANEL + 66 * k, 96), label, FAINT, font(12))
    programs = "  ".join(ACTION_NAMES[action] for action in obs["ownedPrograms"]) or "no programs"
    return _paragraph(pen, programs, 122, COLOURS["glitch"] if obs["ownedPrograms"] else FAINT, 14, 4) + 8


def _draw_policy(pen: ImageDraw.ImageDraw, frame: Frame, y: int) -> int:
    """The chosen action, and where known the value and the likeliest actions as bars."""
    if frame.action is not None:
        pen.text((_PANEL, y), f"next: {ACTION_NAMES[frame.action]}", INK, font(18))
    elif frame.over:
        ink = COLOURS["exit" if frame.over == WON else "virus"]
        pen.text((_PANEL, y), frame.over, ink, font(18))
    if frame.value is not None:
        pen.text((WIDTH - 16, y + 2), f"value {frame.value:.2f}", FAINT, font(15), anchor="ra")
    y += 28
    for action, chance in frame.likeliest(_CHANCES):
        chosen = action == frame.action
        pen.text((_PANEL, y + 7), ACTION_NAMES[action], INK if chosen else FAINT, font(14), anchor="lm")
        start, end = _PANEL + 66, WIDTH - 74
        pen.rounded_rectangle((start, y, end, y + 14), 3, "#222b3b")
        if chance * (end - start) >= 3:
            fill = COLOURS["player"] if chosen else "#47617f"
            pen.rounded_rectangle((start, y, start + chance * (end - start), y + 14), 3, fill)
        pen.text((WIDTH - 16, y + 7), f"{100 * chance:.1f} %", FAINT, font(13), anchor="rm")
        y += 20
    return y + 8


def _draw_news(pen: ImageDraw.ImageDraw, frame: Frame, y: int) -> None:
    if frame.events:
        pen.text((_PANEL, y), f"reward {frame.reward:+.2f}    total {frame.total:+.2f}", INK, font(15))
        y += 24
    for event in frame.events:
        if y > _TOP + _BOARD - 28:
            pen.text((_PANEL, y), "...", FAINT, font(13))
            return
        y = _paragraph(pen, event, y, FAINT, 13, 3)


def _paragraph(pen: ImageDraw.ImageDraw, text: str, y: int, ink: str, size: int, most: int) -> int:
    """Text in at most so many lines as wide as the panel; where the next one may begin."""
    line, lines = "", []
    for word in text.split(" "):
        if pen.textlength(f"{line} {word}", font(size)) > WIDTH - 16 - _PANEL:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    for each in [*lines, line][:most]:
        pen.text((_PANEL, y), each, ink, font(size))
        y += size + 5
    return y
