"""What the game consists of. Cells and blocks never change but are replaced, so a snapshot may share them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from operant.envs.hackmatrix.constants import CELLS, FIRST_INTERVAL, MAX_HISTORY, MAX_HP, START_ATTACK, START_HP


class Block(NamedTuple):
    """A wall that holds points, or a program where there is one; a question block hides which."""

    points: int
    program: int | None
    spawn: int
    question: bool = False


class Cell(NamedTuple):
    """One of the 36 places. It holds credits or energy, never both."""

    content: Block | Literal["empty", "pickup", "exit"] = "empty"
    credits: int = 0
    energy: int = 0
    siphoned: bool = False
    centre: bool = False

    @property
    def block(self) -> Block | None:
        return self.content if isinstance(self.content, Block) else None


@dataclass(slots=True)
class Player:
    """The person's piece."""

    at: int
    hp: int = START_HP
    credits: int = 0
    energy: int = 0
    siphons: int = 0
    score: int = 0
    attack: int = START_ATTACK


@dataclass(slots=True, eq=False)
class Enemy:
    """An enemy on the board; `seen_at` is the last-known cell, which only a cryptog needs."""

    kind: int
    at: int
    hp: int
    disabled: int = 0
    stunned: bool = False
    from_siphon: bool = False
    from_task: bool = False
    seen_at: int = 0


@dataclass(slots=True, eq=False)
class Transmission:
    """An enemy that is on its way."""

    at: int
    turns: int
    kind: int
    from_siphon: bool = False
    from_task: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What UNDO brings back."""

    player: Player
    turn: int
    owned: tuple[int, ...]
    enemies: tuple[Enemy, ...]
    transmissions: tuple[Transmission, ...]
    cells: tuple[Cell, ...]
    show: bool
    calm: bool
    attack_uses: int


@dataclass(slots=True)
class State:
    """A whole game but for its random source.

    `skip` is the STEP flag. `exit` is the exit position, which after an UNDO across a stage boundary
    is not the cell whose content is the exit.
    """

    player: Player
    stage: int = 1
    turn: int = 0
    owned: list[int] = field(default_factory=list)
    enemies: list[Enemy] = field(default_factory=list)
    transmissions: list[Transmission] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=lambda: [Cell()] * CELLS)
    exit: int = 0
    show: bool = False
    calm: bool = False
    skip: bool = False
    attack_uses: int = 0
    interval: int = FIRST_INTERVAL
    next_task: int = FIRST_INTERVAL
    pending: int = 0
    history: list[Snapshot] = field(default_factory=list)

    def walls(self) -> set[int]:
        """The cells that hold a block, siphoned or not."""
        return {at for at, cell in enumerate(self.cells) if isinstance(cell.content, Block)}

    def enemies_at(self, cell: int) -> list[Enemy]:
        return [enemy for enemy in self.enemies if enemy.at == cell]

    def transmissions_at(self, cell: int) -> list[Transmission]:
        return [one for one in self.transmissions if one.at == cell]

    def heal(self, amount: int) -> None:
        self.player.hp = min(self.player.hp + amount, MAX_HP)

    def remember(self) -> None:
        """Append a snapshot to the history, which keeps the newest eight."""
        self.history.append(self._snapshot())
        del self.history[:-MAX_HISTORY]

    def undo(self) -> None:
        """Restore the newest snapshot and forget it. Stage, exit, STEP, tasks and pending spawns stay."""
        old = self.history.pop()
        self.player = old.player
        self.turn = old.turn
        self.owned = list(old.owned)
        self.enemies = list(old.enemies)
        self.transmissions = list(old.transmissions)
        self.cells = list(old.cells)
        self.show, self.calm, self.attack_uses = old.show, old.calm, old.attack_uses

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            player=replace(self.player),
            turn=self.turn,
            owned=tuple(self.owned),
            enemies=tuple(replace(one, from_siphon=False, from_task=False) for one in self.enemies),
            transmissions=tuple(replace(one, from_siphon=False, from_task=False) for one in self.transmissions),
            cells=tuple(self.cells),
            show=self.show,
            calm=self.calm,
            attack_uses=self.attack_uses,
        )
