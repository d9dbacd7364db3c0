"""What a whole session adds up to, by the learner's own account."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arithmetic:
    """The derived numbers of a session that `operant check` shows and scales by.

    `lines` tell a person how frames become gradient steps; `updates` are those steps in all;
    `warm_up` frames pass before the first of them; `growth` bytes will yet be added to a
    checkpoint written now.
    """

    lines: list[str]
    updates: int
    warm_up: int = 0
    growth: int = 0
