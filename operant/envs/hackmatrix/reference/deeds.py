"""What an action of the player did, and what all ways of destroying have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that was carried out; one that was refused is None instead.

    `missed` are the credits and energy that a better place to siphon from would have given.
    """

    ends_turn: bool = False
    kills: int = 0
    picked_up: bool = False
    reached_exit: bool = False
    wasted: bool = False
    missed: tuple[int, int] = (0, 0)


def pays(target: Enemy | Transmission) -> bool:
    """Whether destroying this counts as a kill: whatever a scheduled task sent does not."""
    return not target.from_task


def hit(state: State, targets: Iterable[Enemy], damage: int) -> int:
    """Take HP from every target; survivors are stunned, the dead removed. The number of kills."""
    for enemy in targets:
        enemy.hp -= damage
        enemy.stunned = True
    return bury(state)


def bury(state: State) -> int:
    """Remove every enemy without HP; the number of kills among them."""
    kills = sum(enemy.hp <= 0 and pays(enemy) for enemy in state.enemies)
    state.enemies = [enemy for enemy in state.enemies if enemy.hp > 0]
    return kills
