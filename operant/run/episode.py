"""Episodes as records: the one form in which games, maths problems and agent sessions are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from operant.run.progress import Progress

Ending = Literal["terminated", "truncated", "error"]
ENDINGS: tuple[str, ...] = get_args(Ending)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a text episode: who spoke, what, and what it cost or earned."""

    role: str
    text: str
    tokens: int = 0
    tool: str | None = None
    reward: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The turn as a row."""
        return {
            "role": self.role,
            "text": self.text,
            "tokens": self.tokens,
            "tool": self.tool,
            "reward": self.reward,
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Turn:
        """The turn that `as_dict` wrote."""
        return cls(row["role"], row["text"], row.get("tokens", 0), row.get("tool"), row.get("reward"))


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode as it was played.

    `split` says what it was played for: "train", "eval" or "final". `score` is the undiscounted
    return, or the task's own score; an episode that ended in an error has no score at all, so that
    a broken environment is never mistaken for a bad policy. `item` names the problem, where problems have names.
    """

    env: str
    split: str
    seed: int | None
    at: Progress
    score: float | None
    length: int
    ended: Ending
    parts: dict[str, float] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    media: str | None = None
    error: str | None = None
    item: str | None = None

    def __post_init__(self) -> None:
        if self.ended not in ENDINGS:
            raise ValueError(f"an episode ends by one of {', '.join(ENDINGS)}, not {self.ended!r}")
        if (self.ended == "error") != (self.score is None):
            raise ValueError("an episode that ended in an error has score None; every other one has a score")

    def as_dict(self) -> dict[str, Any]:
        """The episode as a flat row: the counters first, empty details left out."""
        row: dict[str, Any] = self.at.as_dict()
        row["env"] = self.env
        row["split"] = self.split
        row["seed"] = self.seed
        if self.item is not None:
            row["item"] = self.item
        row["score"] = self.score
        row["length"] = self.length
        row["ended"] = self.ended
        if self.parts:
            row["parts"] = self.parts
        if self.turns:
            row["turns"] = [turn.as_dict() for turn in self.turns]
        if self.media is not None:
            row["media"] = self.media
        if self.error is not None:
            row["error"] = self.error
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Episode:
        """The episode that `as_dict` wrote.

        A score that was not finite is `null` in the file; it comes back as NaN, for it is no error.
        """
        score = row["score"]
        if score is None and row["ended"] != "error":
            score = float("nan")
        return cls(
            env=row["env"],
            split=row["split"],
            seed=row["seed"],
            at=Progress.from_dict(row),
            score=score,
            length=row["length"],
            ended=row["ended"],
            parts=dict(row.get("parts", {})),
            turns=tuple(Turn.from_dict(turn) for turn in row.get("turns", ())),
            media=row.get("media"),
            error=row.get("error"),
            item=row.get("item"),
        )
