"""Episodes as records: the one form in which games, maths problems and agent sessions are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from operant.run.progress import Progress

Ending = Literal["terminated", "truncated", "error"]
ENDINGS: tuple[str, ...] = get_args(Ending)
DETAILS = ("error", "id", "parent", "version", "took")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a text episode: who spoke, what, and what it cost or earned.

    `reward` and `score` are what the turn earned and the measure behind it in the task's own unit; `fault` says what
    was wrong with it; `seconds` is how long it took; `ids` are its tokens, where they are kept.
    """

    role: str
    text: str
    tokens: int = 0
    tool: str | None = None
    reward: float | None = None
    score: float | None = None
    fault: str | None = None
    seconds: float | None = None
    ids: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The turn as a row, empty details left out."""
        row: dict[str, Any] = {
            "role": self.role,
            "text": self.text,
            "tokens": self.tokens,
            "tool": self.tool,
            "reward": self.reward,
        }
        details = {"score": self.score, "fault": self.fault, "seconds": self.seconds}
        row |= {key: value for key, value in details.items() if value is not None}
        return {**row, "ids": list(self.ids)} if self.ids else row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Turn:
        """The turn that `as_dict` wrote."""
        details = {key: row[key] for key in ("tokens", "tool", "reward", "score", "fault", "seconds") if key in row}
        return cls(row["role"], row["text"], **details, ids=tuple(row.get("ids", ())))


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode as it was played.

    `split` says what it was played for: "train", "eval", "final", or "transfer" where a policy plays in another
    environment than its own. `score` is the undiscounted
    return, or the task's own score; an episode that ended in an error has no score at all, so that
    a broken environment is never mistaken for a bad policy. `item` names the problem, where problems have names.

    `id` names the episode within its file and `parent` the one whose end it goes on from, in a search; `version`
    counts the updates of the weights that played it, and `took` is how many seconds it took.
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
    id: str | None = None
    parent: str | None = None
    version: int | None = None
    took: float | None = None

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
        details = {key: getattr(self, key) for key in DETAILS}
        return row | {key: value for key, value in details.items() if value is not None}

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
            item=row.get("item"),
            **{key: row.get(key) for key in DETAILS},
        )


NO_SCORE = 0.0
"""What an answer without a score counts as in a mean: as much as a failed one."""


def counted_scores(scores: Iterable[float | None]) -> list[float]:
    """Scores as a mean over answers counts them: one without a score counts as a failed answer, and none is dropped.

    Where not one answer has a score nothing is known of the policy, and there is nothing to count.
    """
    found = list(scores)
    return [NO_SCORE if score is None else score for score in found] if any(s is not None for s in found) else []
