"""Whom one meets over eight rounds, C to cooperate or D to defect, and what a round is worth."""

from __future__ import annotations

from operant.envs.research.kit.repeated import Game, Opponent


def forgives(chance: float) -> Opponent:
    """Answers in kind, but forgives by chance."""
    return Opponent("forgives", 1, lambda own, other: 1.0 if other[-1:] != "D" else chance)


POOL = (
    Opponent("always defects", 3, lambda own, other: 0.0),
    Opponent("always cooperates", 1, lambda own, other: 1.0),
    Opponent("answers in kind", 1, lambda own, other: float(other[-1:] != "D")),
    Opponent("answers in kind, begins with D", 2, lambda own, other: float(other[-1:] == "C")),
    Opponent("defects after two D", 1, lambda own, other: float(other[-2:] != "DD")),
    Opponent("never forgives", 2, lambda own, other: float("D" not in other)),
    Opponent("repeats what paid", 2, lambda own, other: float(own[-1:] == other[-1:])),
    forgives(0.3),
    Opponent("tosses a coin", 3, lambda own, other: 0.5),
    Opponent("answers in kind, sneaks", 1, lambda own, other: 0.8 if other[-1:] != "D" else 0.0),
)
GAME = Game("CD", {"CC": 3.0, "CD": 0.0, "DC": 5.0, "DD": 1.0}, rounds=8, pool=POOL)
