"""A tree of attempts at one research problem: each is an executor's work in a sandbox under one direction.

An attempt begins with the problem's own files, or with the files that its parent left, and ends with the first
validation, which is called for where the executor's actions are spent without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from operant.envs.research.rollout import Rollout
from operant.envs.research.settings import Settings
from operant.envs.research.state import Start, Usage, start_from
from operant.envs.text.dialogue import Message, Response, Scripted
from operant.envs.text.task import Problem, Verdict
from operant.run.episode import Turn

ROOT = "root"
VALIDATE = "```validate\n```"
SEEDS_APART = 1_000_003
Begin = Literal["parent", "fresh"]


class Executor(Protocol):
    """Whoever carries out directions."""

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        """The next words, given all that was said, the direction included; None where there is no room for more."""
        ...


@dataclass(frozen=True)
class ScriptedExecutor:
    """A scripted agent of the task, which does what it always does (final)."""

    agent: Scripted

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        """What the script says next."""
        del seed
        return self.agent.respond(problem, messages)


class VerbatimExecutor:
    """Does a direction word for word, as its only action (final)."""

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        """The direction, and then a validation."""
        del problem, seed
        return messages[-1].text if messages[-1].role == "user" else VALIDATE


@dataclass
class Attempt:
    """A node of the tree: what was to be done, and what came of it. `shown` is None where nothing could be scored.

    `measured` is the shown score on the scale on which the baseline is 0 and the ceiling 1, without limits.
    """

    name: str
    parent: Attempt | None
    direction: str = ""
    shown: float | None = None
    measured: float | None = None
    fault: str | None = None
    verdict: Verdict | None = None
    snapshot: bytes | None = None
    turns: list[Turn] = field(default_factory=list)
    children: int = 0

    @property
    def depth(self) -> int:
        """How many attempts led here."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass(frozen=True)
class Workshop:
    """Where attempts are made: the task, who carries them out, in how many actions, and from whose files."""

    settings: Settings
    executor: Executor
    actions: int
    begin: Begin

    def attempt(self, problem: Problem, parent: Attempt, direction: str, number: int, seed: int) -> Attempt:
        """The `number`-th attempt of a rollout, whose seed is `seed`."""
        node = Attempt(f"{parent.name}.{parent.children}", parent, direction)
        parent.children += 1
        where = problem.answer["seed"]
        rollout = Rollout(self.settings, where, seed + SEEDS_APART * number, self._start(where, parent))
        try:
            self._carry_out(rollout, problem, node, seed + SEEDS_APART * number)
            if self.begin == "parent":
                node.snapshot = rollout.snapshot()
            node.verdict = rollout.verdict()
        finally:
            rollout.close()
        return node

    def _start(self, problem: int, parent: Attempt) -> Start:
        """The parent's files with a budget of their own, or the problem's."""
        if self.begin == "fresh" or parent.snapshot is None:
            return Start()
        return replace(start_from(self.settings, problem, parent.snapshot), tally=Usage())

    def _carry_out(self, rollout: Rollout, problem: Problem, node: Attempt, seed: int) -> None:
        said = [*rollout.opening(), Message("user", node.direction)]
        node.turns = [Turn(each.role, each.text, 0) for each in said]
        for action in range(self.actions):
            words = self.executor.reply(problem, said, seed + action)
            if words is None:
                break
            response = self._step(rollout, node, words)
            said += [Message("assistant", words), *response.messages]
            if node.shown is not None or response.done:
                return
        self._step(rollout, node, VALIDATE)

    def _step(self, rollout: Rollout, node: Attempt, words: str) -> Response:
        """The sandbox's answer to the executor's words, which are written down."""
        response = rollout.hear(words)
        if response.score is not None:
            scale = self.settings.scale
            node.shown = response.score
            node.measured = scale.sign * (response.score - scale.baseline) / scale.span
        node.fault = response.fault
        kept = {"tool": response.tool, "reward": response.reward, "score": response.score, "fault": response.fault}
        node.turns.append(Turn("assistant", words, 0, **kept))
        node.turns += [Turn(each.role, each.text, 0, tool=each.tool) for each in response.messages]
        return response
