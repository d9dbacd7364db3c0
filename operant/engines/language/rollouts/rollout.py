"""One rollout of many turns under way, and the row that keeps it after each finished turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from operant.engines.language.generation.generator import Step
from operant.engines.language.generation.transcript import Transcript
from operant.engines.language.rollouts.env_threads import EnvThread, Kept
from operant.engines.language.rollouts.serialization import (
    bytes_of,
    bytes_text,
    message_rows,
    messages_of,
    step_rows,
    steps_of,
    turns_of,
    verdict_of,
    verdict_row,
)
from operant.engines.language.rollouts.types import PromptPlace
from operant.envs.text.dialogue import DialogueTask, Message
from operant.envs.text.task import Problem, Verdict
from operant.run.episode import Turn


@dataclass(frozen=True)
class Origin:
    """Where a rollout begins that goes on from another's end: its environment, and the transcript that led there."""

    snapshot: bytes
    transcript: Transcript


@dataclass
class Rollout:
    """One rollout: the `index`-th of its group; `number` tells it apart from all others of a call.

    It may go on from an `origin`; with `pauses` it ends at the first turn that shows a score, and keeps a snapshot of
    the environment as it is then. One of training has the `place` of its prompt, and goes on from what is `kept` of it.
    `heard` are the environment's messages, before the first step and after each. Its first steps may have come from
    weights that were made by all prompts before the place `begun_after`, which is that of an earlier attempt.
    """

    problem: Problem
    task: DialogueTask
    group: int
    index: int
    number: int
    most_turns: int
    origin: Origin | None = None
    pauses: bool = False
    place: PromptPlace | None = None
    kept: Kept | None = None
    thread: EnvThread | None = None
    transcript: Transcript | None = None
    snapshot: bytes | None = None
    steps: list[Step] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    heard: list[tuple[Message, ...]] = field(default_factory=list)
    begun: float = 0.0
    begun_after: int = 0
    took: float = 0.0
    done: bool = False
    cut: bool = False
    verdict: Verdict | None = None

    def as_row(self, env: bytes | None) -> dict[str, Any]:
        """All that goes on from here needs: the transcript, in tokens, and a checkpoint of the environment, if any."""
        assert self.place is not None
        return {
            "after": max(self.place.after, self.begun_after),
            "steps": step_rows(self.steps),
            "turns": [turn.as_dict() for turn in self.turns],
            "heard": [message_rows(each) for each in self.heard],
            "took": self.took,
            "done": self.done,
            "cut": self.cut,
            "verdict": None if self.verdict is None else verdict_row(self.verdict),
            "env": bytes_text(env),
        }

    def restore(self, row: Mapping[str, Any]) -> None:
        """Take over what `as_row` wrote; the environment is restored when its thread begins."""
        self.begun_after = row["after"]
        self.steps, self.turns = steps_of(row["steps"]), list(turns_of(row["turns"]))
        self.heard = [messages_of(each) for each in row["heard"]]
        self.took, self.done, self.cut = row["took"], row["done"], row["cut"]
        self.verdict = None if row["verdict"] is None else verdict_of(row["verdict"])
        said = [(step.completion.text, step.completion.finish == "length") for step in self.steps]
        self.kept = Kept(bytes_of(row["env"]), tuple(said), tuple(self.heard))

    def forget(self) -> None:
        """Begin at the opening after all: the environment could not be brought to where it was."""
        self.steps, self.turns, self.heard, self.kept = [], [], [], None
        self.took, self.done, self.cut, self.begun_after = 0.0, False, False, 0
