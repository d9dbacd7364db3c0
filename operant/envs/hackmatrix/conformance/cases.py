"""Reads the conformance cases of `cases.txt`: a state, the actions, and what must hold after the last of them.

A line is `setup | actions | result`, items separated by semicolons. In a setup

* `P(row,col ...)` is the player with hpN, cN credits, eN energy, sN siphons, aN attack, scN score;
* `E type(row,col) hp` an enemy, with `stunned`, `siphon` (from-siphon flag), `sched` (from-task flag);
* `T type(row,col) n` a transmission with its turns left;
* `D(row,col,points)` a data block, `D(row,col,points/spawn)` with its spawn count, `G(row,col,action)` a
  program block; with `*` on a siphoned cell;
* `C(row,col,n)`, `N(row,col,n)`, `K(row,col)` credits, energy, a pickup;
* `own[..]` the owned programs by action; `stage n`, `turn n`, `show`, `calm`.

Actions are numbers, `10x5` five times the same. `conform.py` explains the results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from operant.envs.hackmatrix.constants import ACTION_COUNT, ACTION_NAMES, FIRST_PROGRAM

_PLAYER_KEYS = {
    "hp": "hp",
    "c": "credits",
    "e": "energy",
    "s": "dataSiphons",
    "a": "attackDamage",
    "sc": "score",
}
_ENEMY_FLAGS = {"stunned": "stunned", "siphon": "spawnedFromSiphon", "sched": "isFromScheduledTask"}
_FLAGS = {"show": "showActivated", "calm": "scheduledTasksDisabled"}


@dataclass(frozen=True)
class Case:
    """One conformance case: `state` is what setState takes, `results` the items of the last column."""

    number: int
    text: str
    state: dict[str, Any]
    actions: tuple[int, ...]
    results: tuple[str, ...]


def load_cases() -> list[Case]:
    """All cases in their order, numbered from 1."""
    lines = files("operant.envs.hackmatrix.conformance").joinpath("cases.txt").read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and not line.startswith("#")]
    return [read_case(number, text) for number, text in enumerate(texts, 1)]


def read_case(number: int, text: str) -> Case:
    """One line of the file."""
    setup, actions, results = (part.strip() for part in text.split(" | "))
    return Case(number, text, read_setup(setup), read_actions(actions), tuple(results.split("; ")))


def read_actions(text: str) -> tuple[int, ...]:
    """`10,4x3` is one 10 and three 4; `-` is none at all."""
    actions: list[int] = []
    for item in [] if text == "-" else text.split(","):
        action, _, times = item.partition("x")
        actions += [int(action)] * int(times or 1)
    return tuple(actions)


def read_numbers(text: str) -> list[int]:
    """`0..3,7` is 0, 1, 2, 3 and 7."""
    numbers: list[int] = []
    for item in text.split(",") if text else []:
        first, _, last = item.partition("..")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def read_setup(text: str) -> dict[str, Any]:
    """The state that a setup describes, in the form that setState takes."""
    state: dict[str, Any] = {"enemies": [], "transmissions": [], "blocks": [], "resources": []}
    for item in text.split("; "):
        found = next(((read, match) for form, read in _FORMS if (match := re.fullmatch(form, item))), None)
        if found is None:
            raise ValueError(f"no setup is written {item!r}")
        read, match = found
        read(state, match)
    return state


def _place(match: re.Match[str]) -> dict[str, int]:
    return {"row": int(match["row"]), "col": int(match["col"])}


def _player(state: dict[str, Any], match: re.Match[str]) -> None:
    stats = re.findall(r"([a-z]+)(\d+)", match["stats"])
    state["player"] = _place(match) | {_PLAYER_KEYS[key]: int(value) for key, value in stats}


def _enemy(state: dict[str, Any], match: re.Match[str]) -> None:
    flags = {_ENEMY_FLAGS[flag]: True for flag in match["flags"].split()}
    state["enemies"].append(_place(match) | {"type": match["type"], "hp": int(match["n"])} | flags)


def _transmission(state: dict[str, Any], match: re.Match[str]) -> None:
    entry = {"enemyType": match["type"], "turnsRemaining": int(match["n"])}
    state["transmissions"].append(_place(match) | entry)


def _data_block(state: dict[str, Any], match: re.Match[str]) -> None:
    points, spawn = int(match["n"]), int(match["spawn"] or match["n"])
    entry = {"type": "data", "points": points, "spawnCount": spawn, "siphoned": bool(match["star"])}
    state["blocks"].append(_place(match) | entry)


def _program_block(state: dict[str, Any], match: re.Match[str]) -> None:
    entry = {"type": "program", "programType": ACTION_NAMES[int(match["n"])], "siphoned": bool(match["star"])}
    state["blocks"].append(_place(match) | entry)


def _resource(state: dict[str, Any], match: re.Match[str]) -> None:
    kind = "credits" if match["kind"] == "C" else "energy"
    state["resources"].append(_place(match) | {kind: int(match["n"])})


def _pickup(state: dict[str, Any], match: re.Match[str]) -> None:
    state["resources"].append(_place(match) | {"dataSiphon": True})


def _owned(state: dict[str, Any], match: re.Match[str]) -> None:
    everything = list(range(FIRST_PROGRAM, ACTION_COUNT))
    state["ownedPrograms"] = everything if match["list"] == "all" else read_numbers(match["list"])


def _counter(state: dict[str, Any], match: re.Match[str]) -> None:
    state[match["key"]] = int(match["n"])


def _flag(state: dict[str, Any], match: re.Match[str]) -> None:
    state[_FLAGS[match["key"]]] = True


_CELL = r"(?P<row>\d),(?P<col>\d)"
_FORMS: list[tuple[str, Callable[[dict[str, Any], re.Match[str]], None]]] = [
    (rf"P\({_CELL}(?P<stats>.*)\)", _player),
    (rf"E (?P<type>[a-z]+)\({_CELL}\) (?P<n>\d+)(?P<flags>.*)", _enemy),
    (rf"T (?P<type>[a-z]+)\({_CELL}\) (?P<n>\d+)", _transmission),
    (rf"D(?P<star>\*?)\({_CELL},(?P<n>\d+)(?:/(?P<spawn>\d+))?\)", _data_block),
    (rf"G(?P<star>\*?)\({_CELL},(?P<n>\d+)\)", _program_block),
    (rf"(?P<kind>[CN])\({_CELL},(?P<n>\d+)\)", _resource),
    (rf"K\({_CELL}\)", _pickup),
    (r"own\[(?P<list>.*)\]", _owned),
    (r"(?P<key>stage|turn) (?P<n>\d+)", _counter),
    (r"(?P<key>show|calm)", _flag),
]
