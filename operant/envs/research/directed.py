"""Directed research: the policy chooses which attempt of a tree to go on from and what to try; an executor does it.

The executor is another model, which does not learn, or a script. A rollout is one tree. It is valued by the best
score that any attempt was shown; that attempt's hidden score is the rollout's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from operant.envs.research import directions
from operant.envs.research.attempts import (
    ROOT,
    Attempt,
    Begin,
    Executor,
    ScriptedExecutor,
    VerbatimExecutor,
    Workshop,
)
from operant.envs.research.commands import Misspoken
from operant.envs.research.rewards import BETWEEN, FAILED, clipped, penalty, schemes, tiered
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Dialogue, DialogueTask, Message, Response, Scripted
from operant.envs.text.task import Outcome, Problem, TreeNode, Verdict
from operant.errors import UsageError

VERBATIM = "verbatim"
NEW_BEST = 0.25


class DirectedResearch(DialogueTask):
    """Trees of attempts at the problems of a research task (final).

    `task` is that task by name or folder, with its own `arguments`. A rollout has `nodes` attempts, of at most
    `actions` actions of the executor each. `executor` is `verbatim` (a direction is done word for word), the name of a
    scripted agent of the task, `tiny`, the folder or name of a model, or the address of an OpenAI-compatible server,
    whose model `executor_model` names. `begin` says whether attempts go on from their parent's files or start fresh;
    with `lenient` words without form are a direction too.
    `target` is the raw score from which the reward `target` pays all (the ceiling, unless said).
    """

    SECONDS = 3_600.0

    def __init__(
        self,
        task: str = "prisoners_dilemma",
        arguments: Mapping[str, Any] | None = None,
        nodes: int = 5,
        actions: int = 15,
        executor: str = VERBATIM,
        executor_model: str | None = None,
        executor_temperature: float = 0.9,
        begin: Begin = "parent",
        lenient: bool = False,
        target: float | None = None,
        turns: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.inner = _inner(task, {**(arguments or {}), "turns": actions + 1})
        self.name = f"directed_{self.inner.name}"
        for argument, number in {"nodes": nodes, "actions": actions, "turns": turns or nodes}.items():
            if number < 1:
                raise UsageError(f"{self.name}: {argument} must be at least 1, not {number}")
        if begin not in get_args(Begin):
            raise UsageError(f"{self.name}: begin is no {begin!r}", remedy=f"begin: {' or '.join(get_args(Begin))}")
        self.nodes, self.actions = nodes, actions
        self.begin_from: Begin = begin
        self.lenient = lenient
        self._turns = turns or nodes + 1
        self._max_tokens = max_tokens
        self.executor, self.executor_model = executor, executor_model
        self.executor_temperature = executor_temperature
        self.target = self.inner.folder.task.ceiling if target is None else target
        self.player: Executor | None = self._scripted()

    @property
    def turns(self) -> int:
        """The most turns of a rollout: one for every attempt, and one that may be misspoken, unless said."""
        return self._turns

    @property
    def tolerance(self) -> float:
        """How far a score may lie from its mean by chance."""
        return self.inner.tolerance

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the secret that the hidden seeds are drawn from."""
        return self.inner.fingerprint

    @property
    def style(self) -> Literal["words", "bare"]:
        """The style of the research task."""
        return self.inner.settings.style

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of the research task, as they are told to who directs."""
        system = None if self.style == "bare" else directions.director_manners(self.nodes, self.begin_from)
        return [
            replace(
                each,
                id=f"{self.name}{each.id.removeprefix(self.inner.name)}",
                task=self.name,
                system=system,
                max_tokens=self._max_tokens or each.max_tokens,
            )
            for each in self.inner.problems(split)
        ]

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        """A fresh tree."""
        if self.player is None:
            raise UsageError(
                f"{self.name}: the executor {self.executor} is a model, which only training and evaluation load",
                remedy=f"executor: {VERBATIM}",
            )
        workshop = Workshop(self.inner.settings, self.player, self.actions, self.begin_from)
        return DirectedRollout(self, workshop, problem, seed)

    def agents(self) -> Mapping[str, Scripted]:
        """The task's scripted agents, whose actions are given as directions."""
        return {name: self._director(agent) for name, agent in self.inner.agents().items()}

    def facts(self) -> Mapping[str, str]:
        """Facts about the task for people."""
        own = {
            "executor": self.executor,
            "attempts": f"{self.nodes} of {self.actions} actions",
            "begin": self.begin_from,
        }
        return {**self.inner.facts(), **own, **super().facts()}

    def prepare(self) -> None:
        """As the research task."""
        self.inner.prepare()

    def _scripted(self) -> Executor | None:
        agents = self.inner.agents()
        if self.executor == VERBATIM:
            return VerbatimExecutor()
        return ScriptedExecutor(agents[self.executor]) if self.executor in agents else None

    def _director(self, agent: Scripted) -> Scripted:
        def respond(problem: Problem, said: Sequence[Message]) -> str:
            words, place = agent.respond(problem, said), sum(each.role == "assistant" for each in said)
            if words.strip() in ("validate", "submit"):  # every attempt is validated anyway
                words, place = agent.respond(problem, said[:0]), 0
            name = ROOT + ".0" * place
            return directions.written_direction(Attempt(name, None), words, self.style, place)

        return replace(agent, respond=respond)


class DirectedRollout(Dialogue):
    """A tree that grows by what a policy says (final)."""

    def __init__(self, task: DirectedResearch, workshop: Workshop, problem: Problem, seed: int) -> None:
        self._task, self._workshop, self._settings = task, workshop, workshop.settings
        self._problem, self._seed = problem, seed
        self._nodes = [Attempt(ROOT, None)]
        self._last: Attempt | None = None
        self._faults = self._turns = 0

    def opening(self) -> tuple[Message, ...]:
        """How to direct, and the problem; in style bare the problem alone."""
        problem = Message("user", self._problem.prompt)
        return (problem,) if self._problem.system is None else (Message("system", self._problem.system), problem)

    def hear(self, text: str, cut: bool = False) -> Response:
        """Have the attempt made that the words direct; misspoken words cost a turn and no attempt."""
        if self._done:
            return Response(fault="the rollout has ended", done=True)
        self._turns += 1
        try:
            direction = directions.parse_direction(text, self._nodes, self._settings.style, cut, self._task.lenient)
        except Misspoken as why:
            return self._misspoken(str(why))
        best = self._best
        node = self._workshop.attempt(self._problem, direction.parent, direction.text, len(self._nodes), self._seed)
        self._nodes.append(node)
        self._last = node
        earned = max((node.measured or 0.0) - max(best.measured or 0.0 if best else 0.0, 0.0), 0.0)
        told = Message("tool", directions.result(self._settings, self._nodes, self._left), "attempt")
        return Response((told,), "attempt", earned, node.shown, node.fault, self._done)

    def verdict(self) -> Verdict:
        """The hidden score of the attempt that was shown the best one."""
        best, made = self._best, self._nodes[1:]
        broken = [node.verdict.note for node in made if node.verdict is not None and node.verdict.score is None]
        if best is None and broken:
            return Verdict(None, "error", {}, broken[0])
        hidden = best.verdict if best is not None else None
        score = 0.0 if hidden is None else hidden.score
        parts = {"nodes": float(len(made)), "depth": float(max((node.depth for node in made), default=0))}
        parts |= {"faults": float(self._faults), "failed": float(sum(node.shown is None for node in made))}
        parts |= {"hidden": hidden.parts["hidden"]} if hidden is not None and "hidden" in hidden.parts else {}
        if hidden is not None and score is None:
            return Verdict(None, hidden.outcome, parts, hidden.note, self._recorded())
        outcome: Outcome = hidden.outcome if hidden is not None else "wrong"
        return Verdict(score, outcome, parts | self._rewards(score or 0.0), "", self._recorded())

    @property
    def _done(self) -> bool:
        return not self._left or self._turns >= self._task.turns

    @property
    def _left(self) -> int:
        return self._task.nodes - len(self._nodes) + 1

    @property
    def _best(self) -> Attempt | None:
        """The attempt with the best shown score, of equals the first."""
        scored = [node for node in self._nodes if node.measured is not None]
        return max(scored, key=lambda node: node.measured or 0.0) if scored else None

    def _misspoken(self, reason: str) -> Response:
        each, before = self._settings.fault_penalty, self._faults
        self._faults += 1
        self._last = None
        told = Message("tool", directions.refusal(self._settings, reason, self._nodes, self._left))
        cost = penalty(before + 1, each) - penalty(before, each)
        return Response((told,), reward=-cost, fault=reason, done=self._done)

    def _rewards(self, score: float) -> dict[str, float]:
        """The rewards by scheme; `measured` is what those that look back on other rollouts compare."""
        best, scale = self._best, self._settings.scale
        measured = None if best is None else max(best.measured or 0.0, 0.0)
        shown = [] if measured is None else [clipped(measured)]
        target = scale.sign * (self._task.target - scale.baseline) / scale.span
        return {
            **schemes(score, shown, None, self._faults, self._settings.fault_penalty),
            "binary": tiered(measured, above=True),
            "target": tiered(measured, above=measured is not None and measured > target, least=BETWEEN),
            "last": self._last_reward(),
            **({} if measured is None else {"measured": measured}),
        }

    def _last_reward(self) -> float:
        """tanh of the last attempt's relative improvement over the baseline, and a bonus where it is the best."""
        last, scale = self._last, self._settings.scale
        if last is None or last.shown is None:
            return FAILED
        gain = scale.sign * (last.shown - scale.baseline) / max(abs(scale.baseline), 1e-6)
        before = [node.measured or 0.0 for node in self._nodes if node is not last]
        return math.tanh(gain) + NEW_BEST * ((last.measured or 0.0) > max([0.0, *before]))

    def _recorded(self) -> tuple[TreeNode, ...]:
        """The attempts, for the record."""
        return tuple(
            TreeNode(
                node.name,
                node.parent.name if node.parent is not None and node.parent.parent is not None else None,
                node.verdict,
                tuple(node.turns),
                node.measured,
                node is self._best,
            )
            for node in self._nodes[1:]
            if node.verdict is not None
        )


def _inner(task: str, arguments: Mapping[str, Any]) -> ResearchTask:
    from operant.envs.text.tasks import make_task

    made = make_task(task, arguments)
    if not isinstance(made, ResearchTask):
        raise UsageError(f"{task} is no research task", remedy="operant tasks lists them")
    return made
