"""What the player sees: one enemy and one transmission a cell, no cryptog out of line, nothing under a block."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import CRYPTOG
from operant.envs.hackmatrix.reference.board import in_line
from operant.envs.hackmatrix.reference.state import Enemy, State, Transmission


def is_hidden(state: State, enemy: Enemy) -> bool:
    """Whether this is a cryptog out of the player's row and column, while SHOW is off."""
    return enemy.kind == CRYPTOG and not state.show and not in_line(enemy.at, state.player.at)


def first_enemies(state: State) -> dict[int, Enemy]:
    """By cell, the first enemy of the list there; if it is hidden, so are the cell's others."""
    return {enemy.at: enemy for enemy in reversed(state.enemies)}


def seen_enemies(state: State) -> dict[int, Enemy]:
    """By cell, the enemy that is seen there."""
    return {at: enemy for at, enemy in first_enemies(state).items() if not is_hidden(state, enemy)}


def seen_transmissions(state: State) -> dict[int, Transmission]:
    """By cell, the first transmission of the list there."""
    return {one.at: one for one in reversed(state.transmissions)}


def hints(state: State) -> list[int]:
    """Last-known cells of the hidden cryptogs, in row-major order of where they are."""
    return [enemy.seen_at for _, enemy in sorted(first_enemies(state).items()) if is_hidden(state, enemy)]
