"""Tasks as a taskset of verifiers' v1 API, with an environment that holds dialogues and a harness that needs no uv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from pydantic import Field

from operant.envs.text.dialogue import DialogueTask
from operant.envs.text.task import Problem, Task, Verdict
from operant.envs.verifiers.inside.operant_chat import ChatHarness
from operant_tasks.talk import Split, Talk, judged, opening_of, problems_of, task_of

__all__ = ["OperantChat", "OperantEnv", "OperantTaskset"]

_verdicts: dict[str, Verdict] = {}
"""What dialogues were found to be worth, by their traces, until they are scored."""


class OperantData(vf.TaskData):
    """Where a problem is found; what is needed to judge it stays with the task."""

    task: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    split: Split = "eval"
    number: int = 0
    stop: list[str] = Field(default_factory=list)
    max_tokens: int = 512

    @property
    def made(self) -> Task:
        """The task."""
        return task_of(self.task, self.arguments)

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.made.problems(self.split)[self.number]


class OperantTask(vf.Task[OperantData, vf.State]):
    """A problem and its verdict."""

    @vf.reward
    async def worth(self, trace: vf.Trace) -> float:
        """The verdict on a dialogue, or on the one answer; judging that failed is an error of the rollout."""
        data = self.data
        verdict = _verdicts.pop(trace.id, None) or await judged(data.made, data.problem, last_words(trace))
        if verdict.score is None:
            raise vf.TaskError(verdict.note)
        trace.record_metrics(verdict.parts)
        return verdict.score


class OperantConfig(vf.TasksetConfig):
    """Which task, with which arguments of its own, and how many problems of which split."""

    task_name: str = "arithmetic"
    arguments: dict[str, Any] = Field(default_factory=dict)
    split: Split = "eval"
    examples: int | None = None


class OperantTaskset(vf.Taskset[OperantTask, OperantConfig]):
    """The problems of one of Operant's tasks."""

    def load(self) -> Iterator[OperantTask]:
        """The problems, in their order."""
        settings = self.config
        task = task_of(settings.task_name, settings.arguments)
        for number, problem in enumerate(problems_of(task, settings.split, settings.examples)):
            *system, question = opening_of(problem)
            data = OperantData(
                id=problem.id,
                task=settings.task_name,
                arguments=settings.arguments,
                split=settings.split,
                number=number,
                prompt=question["content"],
                system_prompt=system[0]["content"] if system else None,
                stop=list(problem.stop),
                max_tokens=problem.max_tokens,
            )
            yield OperantTask(data, settings.task)


class OperantEnvConfig(vf.EnvConfig):
    """One seat, on this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class OperantEnv(vf.Env[OperantEnvConfig]):
    """Asks once, or holds a dialogue."""

    async def run(self, task: OperantTask, agents: Any) -> None:
        """One rollout, in a world of its own."""
        made, problem = task.data.made, task.data.problem
        if not isinstance(made, DialogueTask):
            await agents.agent.run(task)
            return
        talk = Talk(made, problem)
        try:
            told, done = await talk.begin(), False
            # The world speaks first, so the task itself says nothing.
            async with agents.agent.interaction(task.with_data(prompt=None, system_prompt=None)) as conversation:
                while not done and not (segment := await conversation.turn(told)).terminated:
                    told, done = await talk.hear(segment.messages[-1].content or "", conversation.trace.is_truncated)
                _verdicts[conversation.trace.id] = await talk.verdict()
        finally:
            await talk.close()


class OperantChat(ChatHarness):
    """A plain conversation, whose answers end where the problem says."""

    def wishes(self, data: OperantData) -> dict[str, Any]:
        """The ends of an answer."""
        return {"max_tokens": data.max_tokens, **({"stop": data.stop} if data.stop else {})}


def last_words(trace: Any) -> str:
    """What the policy said last, as it said it."""
    replies = trace.assistant_messages
    return (replies[-1].content or "") if replies else ""
