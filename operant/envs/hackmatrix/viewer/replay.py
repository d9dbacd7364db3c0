"""A replay is a seed and the actions played, with the policy's outputs where known; all else is simulated again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from operant.envs.hackmatrix.constants import ACTION_COUNT
from operant.envs.hackmatrix.faces.events import step_with_events
from operant.envs.hackmatrix.faces.wire import observation
from operant.envs.hackmatrix.reference.game import Game, Outcome
from operant.errors import UsageError

FORMAT = 1
GAME = "HackMatrix-v0"
WON = "won"
_WRITES_ONE = "operant play hackmatrix --replay FILE    (writes one)"


@dataclass(frozen=True)
class Replay:
    """One episode. `probabilities` [steps][28] and `values` [steps] are what the policy gave before each action."""

    seed: int
    actions: tuple[int, ...]
    probabilities: tuple[tuple[float, ...], ...] | None = None
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if any(not 0 <= action < ACTION_COUNT for action in self.actions):
            raise ValueError(f"actions must lie in 0..{ACTION_COUNT - 1}")
        for column in (self.probabilities, self.values):
            if column is not None and len(column) != len(self.actions):
                raise ValueError(f"{len(column)} rows of policy outputs do not fit {len(self.actions)} actions")
        if any(len(row) != ACTION_COUNT for row in self.probabilities or ()):
            raise ValueError(f"every row of probabilities must have {ACTION_COUNT} numbers")

    @classmethod
    def of(cls, seed: Any, actions: Iterable[Any], probabilities: Any = None, values: Any = None) -> Replay:
        """A replay of whatever numbers a learner has, such as arrays of any library."""
        return cls(
            int(seed),
            tuple(int(action) for action in actions),
            None if probabilities is None else tuple(tuple(map(float, row)) for row in probabilities),
            None if values is None else tuple(map(float, values)),
        )


@dataclass(frozen=True)
class Frame:
    """The game before one action, or after the last, when `action` is None.

    `events` and `reward` are of the action before, `total` the reward so far, `over` how it ended.
    """

    obs: dict[str, Any]
    legal: tuple[int, ...]
    action: int | None = None
    reward: float = 0.0
    total: float = 0.0
    events: tuple[str, ...] = ()
    over: str = ""
    probabilities: tuple[float, ...] | None = None
    value: float | None = None

    def likeliest(self, most: int) -> list[tuple[int, float]]:
        """The legal actions with the largest probabilities, and the one that is taken; none if none are known."""
        if self.probabilities is None:
            return []
        chances = sorted(((action, self.probabilities[action]) for action in self.legal), key=lambda each: -each[1])
        taken = [each for each in chances[most:] if each[0] == self.action]
        return [*chances[: most - len(taken)], *taken]


def frames(replay: Replay) -> Iterator[Frame]:
    """Play the replay again: one frame for every action, and one for the end."""
    game = Game(replay.seed)
    frame = Frame(observation(game.state), tuple(game.legal()))
    for k, action in enumerate(replay.actions):
        chances = replay.probabilities[k] if replay.probabilities else None
        value = replay.values[k] if replay.values else None
        yield replace(frame, action=action, probabilities=chances, value=value)
        outcome, events = step_with_events(game, action)
        total = frame.total + outcome.reward
        frame = Frame(
            observation(game.state), tuple(game.legal()), None, outcome.reward, total, tuple(events), _ending(outcome)
        )
    yield frame


def _ending(outcome: Outcome) -> str:
    """How the game ended in this step; nothing while it goes on."""
    if outcome.refused:
        return "illegal action"
    if outcome.won or outcome.died:
        return WON if outcome.won else "died"
    return "time up" if outcome.truncated else ""


def summary(replay: Replay) -> dict[str, Any]:
    """What came of it; `ended` is empty if it did not."""
    *_, last = frames(replay)
    return {
        "seed": replay.seed,
        "steps": len(replay.actions),
        "stage": last.obs["stage"],
        "score": last.obs["score"],
        "reward": last.total,
        "ended": last.over,
    }


def dump_replays(replays: list[Replay]) -> str:
    """Replays as JSON: seeds, actions, and the policy's outputs where there are any."""
    episodes = [{key: value for key, value in vars(one).items() if value is not None} for one in replays]
    return json.dumps({"format": FORMAT, "game": GAME, "episodes": episodes}) + "\n"


def read_replays(path: Path) -> list[Replay]:
    """The replays of a file; `UsageError` if it holds none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["game"] != GAME or document["format"] != FORMAT:
            raise ValueError(f"it is of {document['game']}, format {document['format']}")
        return [Replay.of(**episode) for episode in document["episodes"]]
    except OSError as problem:
        raise UsageError(
            f"the replay cannot be read: {problem.strerror}", place=str(path), remedy=_WRITES_ONE
        ) from problem
    except (KeyError, TypeError, ValueError) as problem:
        raise UsageError(
            f"this is no replay of {GAME}: {type(problem).__name__}: {problem}",
            place=str(path),
            remedy=_WRITES_ONE,
        ) from problem
