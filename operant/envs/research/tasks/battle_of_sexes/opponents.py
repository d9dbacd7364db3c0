"""Whom one meets over eight evenings, A (one's own favourite) or B (theirs), and what an evening is worth."""

from __future__ import annotations

from operant.envs.research.kit.repeated import Game, Opponent


def holds_on(own: str, other: str) -> float:
    """Begins by the toss of a coin and mostly stays with what it has."""
    if not own:
        return 0.5
    return 0.85 if own[-1] == "A" else 0.15


def shifts_after_clash(own: str, other: str) -> float:
    """Begins with B, stays where they met, and changes where they did not."""
    if not own:
        return 0.0
    return float((own[-1] == other[-1]) == (own[-1] == "A"))


POOL = (
    Opponent("stays with B", 4, lambda own, other: 0.0),
    Opponent("stays with A", 1, lambda own, other: 1.0),
    Opponent("copies", 1, lambda own, other: float(other[-1:] == "A")),
    Opponent("yields to three A in a row", 2, lambda own, other: float("AAA" in other)),
    Opponent("takes turns", 1, lambda own, other: float(len(own) % 2)),
    Opponent("shifts after a clash", 1, shifts_after_clash),
    Opponent("holds on", 4, holds_on),
    Opponent("is contrary", 2, lambda own, other: float(other[-1:] == "B")),
)
GAME = Game("AB", {"AA": 2.0, "AB": 0.0, "BA": 0.0, "BB": 1.0}, rounds=8, pool=POOL)
