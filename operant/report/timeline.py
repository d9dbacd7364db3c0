"""An episode as a timeline: what the policy said, what its world answered, and what each turn was worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from operant.run.episode import Episode, Turn

POLICY = "assistant"


@dataclass(frozen=True)
class Step:
    """A turn of the policy with the answer to it. Number 0 is the opening, in which the policy says nothing.

    `total` is the reward up to and with this step.
    """

    number: int
    said: Turn | None
    heard: tuple[Turn, ...]
    total: float

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All that was said, in order."""
        return ((self.said,) if self.said else ()) + self.heard

    @property
    def tool(self) -> str | None:
        """The tool that was used."""
        return next((turn.tool for turn in self.turns if turn.tool), None)

    @property
    def reward(self) -> float | None:
        """What the step earned; None where it could earn nothing."""
        return _sum([turn.reward for turn in self.turns])

    @property
    def score(self) -> float | None:
        """The measure that was shown last."""
        return next((turn.score for turn in reversed(self.turns) if turn.score is not None), None)

    @property
    def fault(self) -> str | None:
        """What was wrong with it."""
        return next((turn.fault for turn in self.turns if turn.fault), None)

    @property
    def tokens(self) -> int:
        """Tokens that the policy wrote."""
        return self.said.tokens if self.said else 0

    @property
    def read(self) -> int:
        """Tokens of the messages to it."""
        return sum(turn.tokens for turn in self.heard)

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return _sum([turn.seconds for turn in self.turns])


def steps(episode: Episode) -> list[Step]:
    """The opening, if there is one, and a step for each turn of the policy."""
    groups: list[list[Turn]] = [[]]
    for turn in episode.turns:
        if turn.role == POLICY:
            groups.append([])
        groups[-1].append(turn)
    found: list[Step] = []
    total = 0.0
    for number, turns in enumerate(groups):
        total += _sum([turn.reward for turn in turns]) or 0.0
        if turns:
            said = turns[0] if number else None
            found.append(Step(number, said, tuple(turns[1:] if said else turns), total))
    return found


def side_by_side(first: Episode, second: Episode) -> list[tuple[Step | None, Step | None]]:
    """The steps of two episodes by their number; None where one of them was over."""
    left, right = ({step.number: step for step in steps(episode)} for episode in (first, second))
    return [(left.get(number), right.get(number)) for number in sorted(left.keys() | right.keys())]


@dataclass(frozen=True)
class Totals:
    """An episode in numbers; None is "not known"."""

    turns: int
    written: int
    read: int
    faults: int
    reward: float | None
    seconds: float | None


def totals(episode: Episode) -> Totals:
    """Turns and tokens of the policy, tokens of the messages to it, faults, reward and time."""
    spoken = [turn for turn in episode.turns if turn.role == POLICY]
    return Totals(
        turns=len(spoken),
        written=sum(turn.tokens for turn in spoken),
        read=sum(turn.tokens for turn in episode.turns if turn.role != POLICY),
        faults=sum(turn.fault is not None for turn in episode.turns),
        reward=_sum([turn.reward for turn in episode.turns]),
        seconds=episode.took if episode.took is not None else _sum([turn.seconds for turn in episode.turns]),
    )


def same_words(first: Step | None, second: Step | None) -> bool:
    """Whether the policy said the same in two steps."""
    return bool(first and second and first.said and second.said and first.said.text == second.said.text)


def same_opening(first: Step | None, second: Step | None) -> bool:
    """Whether two steps are openings with the same words."""
    if first is None or second is None or first.said or second.said:
        return False
    return [(turn.role, turn.text) for turn in first.heard] == [(turn.role, turn.text) for turn in second.heard]


def parting(first: Episode, second: Episode) -> int | None:
    """The number of the first step at which two policies say different things; None where they never do."""
    spoken = [[step for step in steps(episode) if step.said] for episode in (first, second)]
    pairs = zip_longest(*spoken)
    return next((number for number, pair in enumerate(pairs, start=1) if not same_words(*pair)), None)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
