"""One cell as a picture, and the legend of all pictures."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_PLAIN: dict[str, Any] = {"isExit": False, "isDataSiphon": False, "siphonCenter": False}
_ENEMY = {"hp": 2, "isStunned": False}
_DATA = {"blockType": "data", "isSiphoned": False, "points": 5, "transmissionSpawnCount": 4}

# a cell of the observation, the hp of a player on it, and what it shows
ENTRIES: tuple[tuple[dict[str, Any], int | None, str], ...] = (
    (_PLAIN, 3, "you"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "virus"}}, None, "virus"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "daemon", "hp": 3}}, None, "daemon"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "glitch"}}, None, "glitch"),
    (_PLAIN | {"enemy": _ENEMY | {"type": "cryptog"}}, None, "cryptog"),
    (_PLAIN | {"transmission": {"turnsUntilSpawn": 1}}, None, "hatches\nin 1 turn"),
    (_PLAIN | {"block": _DATA}, None, "5 points,\ncalls 4"),
    (_PLAIN | {"isDataSiphon": True, "credits": 2}, None, "siphon,\ncredits"),
    (_PLAIN | {"energy": 3}, None, "energy"),
)


SIDE = 88  # pixels of a cell
_FINE = 2  # drawn this much larger, then shrunk, for smooth edges

BACKGROUND = "#10141c"
GROUND = "#1c2433"
INK = "#e8edf5"
FAINT = "#8b97ab"
COLOURS = {
    "player": "#35d0e6",
    "virus": "#ff5d5d",
    "daemon": "#ff9f43",
    "glitch": "#e06bff",
    "cryptog": "#5fd38d",
    "transmission": "#f4f6fb",
    "data": "#24557f",
    "program": "#5b3a94",
    "question": "#7a5a1e",
    "siphoned": "#363f50",
    "credits": "#f2c94c",
    "energy": "#5aa9ff",
    "pickup": "#35d0e6",
    "exit": "#2fbf71",
}

Box = tuple[float, float, float, float]


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font that comes with Pillow."""
    return ImageFont.load_default(size)


def tile(cell: dict[str, Any], player: int | None, hint: bool) -> Image.Image:
    """A cell of the observation; `player` is the hp of a player who stands there, `hint` a cryptog last seen there."""
    facts = {key: value for key, value in cell.items() if key not in ("row", "col")}
    return _drawn(json.dumps(facts, sort_keys=True), player, hint)


@lru_cache(maxsize=2048)
def _drawn(facts: str, player: int | None, hint: bool) -> Image.Image:
    cell = json.loads(facts)
    side = SIDE * _FINE
    image = Image.new("RGB", (side, side), BACKGROUND)
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((3, 3, side - 4, side - 4), 12, GROUND)
    _draw_ground(pen, cell, crowded=player is not None or hint or "enemy" in cell or "transmission" in cell)
    if one := cell.get("transmission"):
        _draw_transmission(pen, one)
    if hint:
        _write(pen, (0.5, 0.45), "C?", 0.24, "#3b7a57")
    if enemy := cell.get("enemy"):
        draw_enemy(pen, enemy, (0.5, 0.42), 0.27)
    if player is not None:
        _draw_player(pen, player)
    return image.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def _at(x: float, y: float, radius: float) -> Box:
    """A square around a point, all in parts of the tile's side."""
    side = SIDE * _FINE
    return (x - radius) * side, (y - radius) * side, (x + radius) * side, (y + radius) * side


def _write(pen: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: float, ink: str) -> None:
    side = SIDE * _FINE
    pen.text((at[0] * side, at[1] * side), text, ink, font(int(size * side)), anchor="mm")


def _draw_ground(pen: ImageDraw.ImageDraw, cell: dict[str, Any], crowded: bool) -> None:
    if block := cell.get("block"):
        _draw_block(pen, block, crowded)
    if cell["isExit"]:
        pen.rounded_rectangle(_at(0.5, 0.5, 0.46), 12, "#173d2b", COLOURS["exit"], 6)
        _write(pen, (0.5, 0.87), "EXIT", 0.17, COLOURS["exit"])
    if cell["siphonCenter"]:
        for x, y in ((0.12, 0.0), (0.0, 0.12)):
            side = SIDE * _FINE
            line = (0.5 - x) * side, (0.44 - y) * side, (0.5 + x) * side, (0.44 + y) * side
            pen.line(line, "#4d5a70", 8)
    if cell["isDataSiphon"]:
        draw_pickup(pen, (0.8, 0.22), 0.12)
    for name in ("credits", "energy"):
        for k in range(min(cell.get(name, 0), 5)):
            draw_resource(pen, name, (0.15 + 0.15 * k, 0.87), 0.055)


def _draw_block(pen: ImageDraw.ImageDraw, block: dict[str, Any], crowded: bool) -> None:
    """A block with its content, small and at the bottom where somebody stands on it."""
    siphoned, kind = block["isSiphoned"], block["blockType"]
    ink = FAINT if siphoned else INK
    pen.rounded_rectangle(_at(0.5, 0.5, 0.46), 12, COLOURS["siphoned" if siphoned else kind])
    text = {"data": str(block.get("points")), "program": block.get("programType"), "question": "?"}[kind]
    size = 0.15 if crowded else 0.24 if kind == "program" else 0.4
    _write(pen, (0.36, 0.89) if crowded else (0.5, 0.42), text, size, ink)
    if block.get("transmissionSpawnCount"):
        _write(pen, (0.82, 0.87), f"+{block['transmissionSpawnCount']}", 0.17, ink)


def draw_resource(pen: ImageDraw.ImageDraw, name: str, at: tuple[float, float], radius: float) -> None:
    """A coin, or a diamond for energy."""
    left, top, right, bottom = _at(*at, radius)
    x, y = (left + right) / 2, (top + bottom) / 2
    if name == "credits":
        pen.ellipse((left, top, right, bottom), COLOURS[name])
    else:
        pen.polygon([(x, top - 3), (right + 3, y), (x, bottom + 3), (left - 3, y)], COLOURS[name])


def draw_pickup(pen: ImageDraw.ImageDraw, at: tuple[float, float], radius: float) -> None:
    """A data siphon that lies about."""
    pen.ellipse(_at(*at, radius), None, COLOURS["pickup"], 6)
    _write(pen, at, "S", radius * 1.5, COLOURS["pickup"])


def _draw_transmission(pen: ImageDraw.ImageDraw, one: dict[str, Any]) -> None:
    for start in range(0, 360, 45):
        pen.arc(_at(0.5, 0.42, 0.27), start, start + 27, COLOURS["transmission"], 6)
    kind = one.get("enemyType")
    label = f"{one['turnsUntilSpawn']}{kind[0].upper() if kind else ''}"
    _write(pen, (0.5, 0.42), label, 0.24, COLOURS[kind] if kind else COLOURS["transmission"])


def draw_enemy(pen: ImageDraw.ImageDraw, enemy: dict[str, Any], at: tuple[float, float], radius: float) -> None:
    """Each type in its shape and colour, with its hp as dots below; grey while stunned."""
    kind = enemy["type"]
    colour = "#9aa3b2" if enemy["isStunned"] else COLOURS[kind]
    corners = {"virus": (3, 0), "daemon": (4, 45), "glitch": (4, 0), "cryptog": (6, 0)}[kind]
    left, top, right, bottom = _at(*at, radius)
    circle = (left + right) / 2, (top + bottom) / 2, (right - left) / 2
    pen.regular_polygon(circle, corners[0], corners[1], colour, BACKGROUND)
    _write(pen, (at[0], at[1] + (0.05 if kind == "virus" else 0)), kind[0].upper(), radius * 0.8, BACKGROUND)
    if enemy["isStunned"]:
        _write(pen, (at[0] + radius, at[1] - radius * 0.8), "zz", radius * 0.7, INK)
    _draw_dots(pen, enemy["hp"], (at[0], at[1] + radius + 0.07), colour)


def _draw_dots(pen: ImageDraw.ImageDraw, count: int, at: tuple[float, float], colour: str) -> None:
    for k in range(count):
        pen.ellipse(_at(at[0] + 0.1 * (k - (count - 1) / 2), at[1], 0.035), colour)


def _draw_player(pen: ImageDraw.ImageDraw, hp: int) -> None:
    colour = COLOURS["player"] if hp else "#6b7280"
    pen.ellipse(_at(0.5, 0.42, 0.26), colour, BACKGROUND, 4)
    pen.ellipse(_at(0.5, 0.34, 0.08), BACKGROUND)
    pen.pieslice(_at(0.5, 0.56, 0.15), 180, 360, BACKGROUND)
    _draw_dots(pen, hp, (0.5, 0.75), colour)
