"""Environments of verifiers as tasks: `verifiers:ID` in a spec, with the arguments that the environment takes.

Arguments that are ours, and are not handed to the environment:

* `python`: the interpreter that has verifiers and the environment installed; the one that runs us by default;
* `eval_arguments`: arguments that differ for held-out problems, such as `{split: test}`;
* `held_out`: where the environment has one set of rows only, so many of the last are held out;
* `harness`: the program of verifiers' v1 API that an agent runs in; a plain conversation by default;
* `max_tokens`: the most that the policy writes in one turn, unless `env.text.max_tokens` says it;
* `seconds`: the most that one call of the policy may take.
"""

from __future__ import annotations

import atexit
import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

from operant.envs.text.dialogue import Message
from operant.envs.text.task import Problem, Task, Verdict, failed
from operant.envs.verifiers.process import OPEN_SECONDS, ExternalProcess
from operant.errors import UsageError

PREFIX = "verifiers:"
BLOCK = 256
"""Rows that are fetched at once."""
OWN = ("python", "eval_arguments", "held_out", "harness", "max_tokens", "seconds")


@dataclass(frozen=True)
class Rollout:
    """What a rollout came to, as its environment reports it; `session` is the name under which it asked the policy.

    One that ended in an error has no reward, for an error is no bad answer.
    """

    session: str
    reward: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    error: str | None = None
    truncated: bool = False

    @property
    def verdict(self) -> Verdict:
        """The reward as a verdict."""
        if self.error is not None or self.reward is None or not math.isfinite(self.reward):
            return failed(self.error or f"the environment gave the reward {self.reward}")
        outcome = "right" if self.reward >= 1 else "partial" if self.reward > 0 else "wrong"
        return Verdict(float(self.reward), outcome, dict(self.parts))


class VerifiersTask(Task):
    """Problems of an environment, which plays and scores them itself (final)."""

    QUICK: ClassVar[bool] = False

    def __init__(
        self,
        environment: str,
        arguments: Mapping[str, Any] | None = None,
        python: str | None = None,
        eval_arguments: Mapping[str, Any] | None = None,
        held_out: int | None = None,
        harness: str | None = None,
        max_tokens: int = 512,
        seconds: float = 600.0,
    ) -> None:
        if not environment:
            raise UsageError(
                "verifiers: names no environment", remedy="verifiers:ENVIRONMENT, such as verifiers:wordle"
            )
        self.name = f"{PREFIX}{environment}"
        self.max_tokens = max_tokens
        self.seconds = seconds
        given = {"environment": environment, "arguments": dict(arguments or {}), "held_out": held_out}
        other = None if eval_arguments is None else dict(eval_arguments)
        self._key = json.dumps([python, {**given, "eval_arguments": other, "harness": harness}], sort_keys=True)

    @property
    def process(self) -> ExternalProcess:
        """The process in which the environment lives, which tasks of the same arguments share."""
        return _opened(self._key)[0]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the environment said of itself: `generation`, the `version` of verifiers, rows of `train` and `eval`."""
        return _opened(self._key)[1]

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The environment's rows."""
        return _Rows(self, split, int(self.facts[split]))

    def begin(self, problem: Problem, n: int, url: str, model: str, sampling: Mapping[str, Any]) -> Begun:
        """`n` rollouts of a problem, played against the policy at an address."""
        place = {"split": problem.answer["split"], "row": problem.answer["row"]}
        asked = {"n": n, "url": url, "model": model, "sampling": dict(sampling), "seconds": self.seconds}
        ticket, answer = self.process.begin("group", **place, **asked)
        return Begun(self.process, ticket, answer)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """An environment scores the rollouts that it has played, and nothing else."""
        del completion
        return failed(f"{problem.id} is scored by its environment, which plays it itself")

    def gold(self, problem: Problem) -> str | None:
        """Environments keep their answers to themselves."""
        del problem
        return None


@dataclass(frozen=True)
class Begun:
    """Rollouts under way."""

    process: ExternalProcess
    ticket: int
    answer: Future[dict[str, Any]]

    @property
    def done(self) -> bool:
        """Whether they have ended."""
        return self.answer.done()

    def rollouts(self) -> list[Rollout]:
        """What they came to."""
        return [_rollout(row) for row in self.answer.result()["rollouts"]]

    def drop(self) -> None:
        """Give them up."""
        self.process.drop(self.ticket)


class _Rows(Sequence[Problem]):
    """Rows as problems, fetched when they are asked for."""

    def __init__(self, task: VerifiersTask, split: str, length: int) -> None:
        self.task = task
        self.split = split
        self.length = length
        self._block = lru_cache(maxsize=None)(self._fetch)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(self.length))]
        place = range(self.length)[at]
        prompt = self._block(place // BLOCK)[place % BLOCK]
        name = self.task.name
        answer = {"split": self.split, "row": place}
        return Problem(f"{name}/{self.split}/{place}", name, prompt, answer, max_tokens=self.task.max_tokens)

    def _fetch(self, block: int) -> list[str]:
        reply = self.task.process.ask("rows", OPEN_SECONDS, split=self.split, start=block * BLOCK, count=BLOCK)
        return [str(row["prompt"]) for row in reply["rows"]]


def split_arguments(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `VerifiersTask` for the task `name`: ours by their names, all others for the environment."""
    own = {key: value for key, value in given.items() if key in OWN}
    others = {key: value for key, value in given.items() if key not in OWN}
    return {"environment": name.removeprefix(PREFIX), "arguments": others, **own}


_open: dict[str, tuple[ExternalProcess, dict[str, Any]]] = {}


def _opened(key: str) -> tuple[ExternalProcess, dict[str, Any]]:
    """The process of these arguments, begun again if it has died; it ends when its pipe does, which is with us."""
    if key in _open and not _open[key][0].alive:
        _open.pop(key)[0].close()
    if key not in _open:
        python, request = json.loads(key)
        process = ExternalProcess(python, f"{PREFIX}{request['environment']}")
        try:
            _open[key] = process, process.ask("open", OPEN_SECONDS, **request)
        except BaseException:
            process.close()
            raise
    return _open[key]


@atexit.register
def _close_all() -> None:
    for process, _ in _open.values():
        process.close()


def _rollout(row: Mapping[str, Any]) -> Rollout:
    messages = tuple(Message(each["role"], each["text"]) for each in (*row["opening"], *row["messages"]))
    parts = {key: float(value) for key, value in row["parts"].items() if isinstance(value, int | float)}
    return Rollout(row["session"], row["reward"], parts, messages, row["error"], row["truncated"])
