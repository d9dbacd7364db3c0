"""What both generations of the API need: problems by their numbers, verdicts, and dialogues on threads of their own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Literal

from operant.envs.text.dialogue import Dialogue, DialogueTask, Response, as_chat
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task, Verdict
from operant.envs.text.tasks import make_task

Split = Literal["train", "eval"]
MOST = 1_000
"""Problems of a split that are offered where nobody says how many: some splits have no end."""


def task_of(name: str, arguments: Mapping[str, Any]) -> Task:
    """The task of these arguments, made once."""
    return _made(name, json.dumps(arguments, sort_keys=True))


def problems_of(task: Task, split: Split, most: int | None) -> Sequence[Problem]:
    """The first problems of a split, in its order."""
    problems = task.problems(split)
    return problems[: min(len(problems), MOST if most is None else most)]


def opening_of(problem: Problem) -> list[dict[str, str]]:
    """A problem as messages; the beginning of the answer, where there is one, stands at the end of the question."""
    system = [{"role": "system", "content": problem.system}] if problem.system else []
    return [*system, {"role": "user", "content": problem.prompt + problem.prefix}]


async def judged(task: Task, problem: Problem, completion: str) -> Verdict:
    """The verdict on an answer, in a worker process with a time limit unless it takes microseconds."""
    text = problem.prefix + completion
    if task.QUICK:
        return task.verify(problem, text)
    return await asyncio.wrap_future(_pool(task.recipe[0], json.dumps(task.recipe[1])).submit(problem, text))


class Talk:
    """One dialogue, spoken to by one thread, as it asks (final). Close it."""

    def __init__(self, task: DialogueTask, problem: Problem) -> None:
        self.task = task
        self.problem = problem
        self.turns = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="talk")
        self._dialogue: Dialogue | None = None

    async def begin(self) -> list[dict[str, str]]:
        """Begin afresh; what the policy is told first."""
        dialogue: Dialogue = await self._do(self.task.begin, self.problem, _visits(self.problem.id))
        self._dialogue = dialogue
        return as_chat(await self._do(dialogue.opening))

    async def hear(self, text: str, cut: bool) -> tuple[list[dict[str, str]], bool]:
        """The answer to the policy's words, and whether the rollout is over."""
        assert self._dialogue is not None, "begun before"
        self.turns += 1
        response: Response = await self._do(self._dialogue.hear, text, cut)
        return as_chat(response.messages), response.done or self.turns >= self.task.turns

    async def verdict(self) -> Verdict:
        """What the rollout is worth, asked once."""
        assert self._dialogue is not None, "begun before"
        return await self._do(self._dialogue.verdict)

    async def close(self) -> None:
        """Leave nothing behind; may be called twice."""
        dialogue, self._dialogue = self._dialogue, None
        if dialogue is not None:
            await self._do(dialogue.close)
        self._thread.shutdown(wait=False)

    async def _do(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


_met: Counter[str] = Counter()
_counting = threading.Lock()


def _visits(problem: str) -> int:
    """How often a problem was begun before: rollouts of one problem have seeds of their own."""
    with _counting:
        _met[problem] += 1
        return _met[problem] - 1


@lru_cache(maxsize=64)
def _made(name: str, arguments: str) -> Task:
    return make_task(name, json.loads(arguments))


@lru_cache(maxsize=64)
def _pool(name: str, arguments: str) -> Verifiers:
    return Verifiers([_made(name, arguments)])
