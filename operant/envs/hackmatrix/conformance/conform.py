"""Holds any form of the game against the conformance cases, through a small protocol.

A result is a list of items, all of which must hold after the last action:

* `at r,c`, `hp`, `c`, `e`, `s`, `atk`, `score`, `stage`, `turn` n; `show`, `calm` on or off; `own [..]` in order;
* `R x` reward of the last action, `part key x` an entry of its breakdown, `done`, `not done`, and `invalid`:
  refused with reward 0;
* `E type(r,c) hp` as seen, `awake` or `stunned`, `siphon`; `E one of type hp or .. at (r,c)`;
  `X type(r,c) hp` in the list of enemies, where all X together are the whole list; `hints [(r,c),..]`;
* `T(r,c) n` a transmission, with its type or `unknown`; `D`, `G`, `C`, `N`, `K` as in a setup;
  `centre(r,c)`, `exit(r,c)`; `no` before any of them for absence; `nE`, `nT`, `nB`, `nK` n for their number;
* `mask =`, `has` or `lacks {..}`; `interval`, `next`, `pending` n of the internal state;
* `vector ..` and `channels(r,c) channel=value,..` of the arrays, where a form has arrays;
* `board stage`: the board is one that a new stage can have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from operant.envs.hackmatrix.conformance.cases import Case, read_numbers
from operant.envs.hackmatrix.conformance.fresh_board import faults_of_board
from operant.envs.hackmatrix.constants import ACTION_NAMES

_CLOSE = 1e-4
_STATS = {
    "hp": "playerHP",
    "c": "credits",
    "e": "energy",
    "s": "dataSiphons",
    "atk": "baseAttack",
    "score": "score",
    "stage": "stage",
    "turn": "turn",
}
_TIMERS = {
    "interval": "scheduledTaskInterval",
    "next": "nextScheduledTaskTurn",
    "pending": "pendingSiphonTransmissions",
}
_SWITCHES = {"show": "showActivated", "calm": "scheduledTasksDisabled"}


class Form(Protocol):
    """What the checker asks of a form. Dictionaries are those of the JSON-lines face."""

    def set_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Replace the game; its observation."""
        ...

    def step(self, action: int) -> dict[str, Any]:
        """Play an action; observation, reward, done, info."""
        ...

    def internal(self) -> dict[str, Any]:
        """The internal state."""
        ...

    def valid_actions(self) -> list[int]:
        """The offered actions, ascending."""
        ...

    def arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The player vector and the grid of the observation; None if the form has none."""
        ...


@dataclass
class Scene:
    """What a form shows after the last action."""

    obs: dict[str, Any]
    inside: dict[str, Any]
    mask: list[int]
    arrays: tuple[np.ndarray, np.ndarray] | None
    last: dict[str, Any] | None
    listed: list[tuple[Any, ...]] = field(default_factory=list)

    def cell(self, match: re.Match[str]) -> dict[str, Any]:
        return self.obs["cells"][int(match["row"])][int(match["col"])]

    def count(self, key: str) -> int:
        """In how many cells something is seen."""
        return sum(bool(cell.get(key)) for row in self.obs["cells"] for cell in row)


def faults(form: Form, case: Case) -> list[str]:
    """The differences from what the case says, as text; nothing if there are none."""
    scene = play(form, case)
    found = [f"{item}: {problem}" for item in case.results if (problem := _fault(scene, item))]
    if scene.listed and sorted(scene.listed) != sorted(_list_of(scene)):
        found.append(f"the enemies are {_list_of(scene)}")
    return found


def play(form: Form, case: Case) -> Scene:
    """Set the case up and play its actions."""
    obs, last = form.set_state(case.state), None
    for action in case.actions:
        last = form.step(action)
        obs = last["observation"]
    return Scene(obs, form.internal(), form.valid_actions(), form.arrays(), last)


def _fault(scene: Scene, item: str) -> str | None:
    for pattern, check in _CHECKS:
        match = re.fullmatch(pattern, item)
        if match:
            return check(scene, match)
    raise ValueError(f"no result is written {item!r}")


def _differs(found: Any, wanted: Any) -> str | None:
    return None if found == wanted else f"found {found!r}"


def _strays(found: float, wanted: float) -> str | None:
    return None if abs(found - wanted) <= _CLOSE + 1e-6 * abs(wanted) else f"found {found!r}"


def _list_of(scene: Scene) -> list[tuple[Any, ...]]:
    return [(one["type"], one["row"], one["col"], one["hp"]) for one in scene.inside["enemies"]]


def _at(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs((scene.obs["playerRow"], scene.obs["playerCol"]), (int(match["row"]), int(match["col"])))


def _stat(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(scene.obs[_STATS[match["key"]]], int(match["n"]))


def _timer(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(scene.inside[_TIMERS[match["key"]]], int(match["n"]))


def _switch(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(scene.obs[_SWITCHES[match["key"]]], match["on"] == "on")


def _owned(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(scene.obs["ownedPrograms"], read_numbers(match["list"]))


def _last(scene: Scene) -> dict[str, Any]:
    assert scene.last is not None, "a case about a reward has an action"
    return scene.last


def _reward(scene: Scene, match: re.Match[str]) -> str | None:
    return _strays(_last(scene)["reward"], float(match["x"]))


def _part(scene: Scene, match: re.Match[str]) -> str | None:
    return _strays(_last(scene)["info"]["reward_breakdown"][match["key"]], float(match["x"]))


def _done(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(_last(scene)["done"], not match["not"])


def _invalid(scene: Scene, match: re.Match[str]) -> str | None:
    last = _last(scene)
    found = last["reward"], last["done"], last["info"].get("invalid_action"), any(_breakdown(last))
    return _differs(found, (0, True, True, False))


def _breakdown(last: dict[str, Any]) -> list[float]:
    return list(last["info"]["reward_breakdown"].values())


def _enemy(scene: Scene, match: re.Match[str]) -> str | None:
    enemy = scene.cell(match).get("enemy")
    if enemy is None or (enemy["type"], enemy["hp"]) != (match["type"], int(match["n"])):
        return f"found {enemy}"
    flags = match["flags"].split()
    wrong_stun = ("awake" in flags and enemy["isStunned"]) or ("stunned" in flags and not enemy["isStunned"])
    wrong_origin = "siphon" in flags and not enemy["spawnedFromSiphon"]
    return f"found {enemy}" if wrong_stun or wrong_origin else None


def _one_of(scene: Scene, match: re.Match[str]) -> str | None:
    enemy = scene.cell(match).get("enemy") or {}
    found = f"{enemy.get('type')} {enemy.get('hp')}"
    return None if found in match["choice"].split(" or ") else f"found {found}"


def _listed(scene: Scene, match: re.Match[str]) -> str | None:
    wanted = match["type"], int(match["row"]), int(match["col"]), int(match["n"])
    scene.listed.append(wanted)
    return None if wanted in _list_of(scene) else f"found {_list_of(scene)}"


def _hints(scene: Scene, match: re.Match[str]) -> str | None:
    found = ",".join(f"({hint['row']},{hint['col']})" for hint in scene.obs["cryptogHints"])
    return _differs(found, match["list"])


def _transmission(scene: Scene, match: re.Match[str]) -> str | None:
    one = scene.cell(match).get("transmission")
    if one is None or one["turnsUntilSpawn"] != int(match["n"]):
        return f"found {one}"
    return _differs(one.get("enemyType", "unknown"), match["type"]) if match["type"] else None


def _block(scene: Scene, match: re.Match[str]) -> str | None:
    block = scene.cell(match).get("block")
    if block is None or block["blockType"] == "question":
        return f"found {block}"
    is_data = match["kind"] == "D"
    amount = block["points"] if is_data else block.get("programActionIndex")
    found = block["blockType"] == "data", amount, block["transmissionSpawnCount"], block["isSiphoned"]
    return _differs(found, (is_data, int(match["n"]), int(match["spawn"]), bool(match["star"])))


def _resource(scene: Scene, match: re.Match[str]) -> str | None:
    key = "credits" if match["kind"] == "C" else "energy"
    return _differs(scene.cell(match).get(key), int(match["n"]))


_KEYS = {
    "K": "isDataSiphon",
    "centre": "siphonCenter",
    "exit": "isExit",
    "C": "credits",
    "N": "energy",
    "E": "enemy",
    "block": "block",
}


def _presence(scene: Scene, match: re.Match[str]) -> str | None:
    return _differs(bool(scene.cell(match).get(_KEYS[match["kind"]])), not match["no"])


def _number(scene: Scene, match: re.Match[str]) -> str | None:
    if match["kind"] == "E":
        return _differs(len(scene.inside["enemies"]), int(match["n"]))
    key = {"T": "transmission", "B": "block", "K": "isDataSiphon"}[match["kind"]]
    return _differs(scene.count(key), int(match["n"]))


def _mask(scene: Scene, match: re.Match[str]) -> str | None:
    offered, wanted = set(scene.mask), set(read_numbers(match["list"]))
    holds = {"=": offered == wanted, "has": wanted <= offered, "lacks": not wanted & offered}[match["how"]]
    names = [f"{action} {ACTION_NAMES[action]}" for action in sorted(offered ^ wanted)]
    return None if holds else f"found {sorted(offered)}, which differs in {', '.join(names)}"


def _vector(scene: Scene, match: re.Match[str]) -> str | None:
    wanted = [float(x) for x in match["list"].split(",")]
    if scene.arrays is None or np.allclose(scene.arrays[0], wanted, atol=1e-5):
        return None
    return f"found {scene.arrays[0]}"


def _channels(scene: Scene, match: re.Match[str]) -> str | None:
    if scene.arrays is None:
        return None
    channels = scene.arrays[1][int(match["row"]), int(match["col"])]
    wanted = [item.split("=") for item in match["list"].split(",")]
    strays = [f"channel {k} is {channels[int(k)]}" for k, x in wanted if abs(channels[int(k)] - float(x)) > 1e-5]
    return ", ".join(strays) or None


def _fresh(scene: Scene, match: re.Match[str]) -> str | None:
    return ", ".join(faults_of_board(scene.obs)) or None


class _Check(NamedTuple):
    """How an item is written, and who says whether it holds."""

    pattern: str
    check: Callable[[Scene, re.Match[str]], str | None]


_CELL = r"\(?(?P<row>\d),(?P<col>\d)\)?"
_CHECKS = [
    _Check(rf"at {_CELL}", _at),
    _Check(rf"(?P<key>{'|'.join(_STATS)}) (?P<n>\d+)", _stat),
    _Check(rf"(?P<key>{'|'.join(_TIMERS)}) (?P<n>\d+)", _timer),
    _Check(r"(?P<key>show|calm) (?P<on>on|off)", _switch),
    _Check(r"own \[(?P<list>.*)\]", _owned),
    _Check(r"R (?P<x>[-\d.]+)", _reward),
    _Check(r"part (?P<key>\w+) (?P<x>[-\d.]+)", _part),
    _Check(r"(?P<not>not )?done", _done),
    _Check(r"invalid", _invalid),
    _Check(rf"E one of (?P<choice>.+) at {_CELL}", _one_of),
    _Check(rf"E (?P<type>[a-z]+){_CELL} (?P<n>\d+)(?P<flags>( awake| stunned| siphon)*)", _enemy),
    _Check(rf"X (?P<type>[a-z]+){_CELL} (?P<n>\d+)", _listed),
    _Check(r"hints \[(?P<list>.*)\]", _hints),
    _Check(rf"T{_CELL} (?P<n>\d+)( (?P<type>[a-z]+))?", _transmission),
    _Check(r"(?P<kind>[DG])(?P<star>\*?)\((?P<row>\d),(?P<col>\d),(?P<n>\d+)/(?P<spawn>\d+)\)", _block),
    _Check(r"(?P<kind>[CN])\((?P<row>\d),(?P<col>\d),(?P<n>\d+)\)", _resource),
    _Check(rf"(?P<no>no )?(?P<kind>{'|'.join(_KEYS)}){_CELL}", _presence),
    _Check(r"n(?P<kind>[ETBK]) (?P<n>\d+)", _number),
    _Check(r"mask (?P<how>=|has|lacks) \{(?P<list>.*)\}", _mask),
    _Check(r"vector (?P<list>.+)", _vector),
    _Check(rf"channels{_CELL} (?P<list>.+)", _channels),
    _Check(r"board stage", _fresh),
]
