"""Tasks as environments of verifiers' classic API: one turn, or as many as a dialogue has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import verifiers as vf  # pyright: ignore[reportMissingImports]
from datasets import Dataset  # pyright: ignore[reportMissingImports]

from operant.envs.text.dialogue import DialogueTask
from operant.envs.text.task import Problem, Task, Verdict
from operant_tasks.talk import Split, Talk, judged, opening_of, problems_of, task_of

vf: Any


def load(task: str, examples: int | None = None, eval_examples: int | None = None, **arguments: Any) -> Any:
    """The environment of a task: the first `examples` problems to train on, and the first `eval_examples` held out.

    All other arguments are the task's own, such as `style` or `digits`.
    """
    made = task_of(task, arguments)
    found = {"train": problems_of(made, "train", examples), "eval": problems_of(made, "eval", eval_examples)}
    settings = {
        "dataset": Dataset.from_list([_row(problem, "train", at) for at, problem in enumerate(found["train"])]),
        "eval_dataset": Dataset.from_list([_row(problem, "eval", at) for at, problem in enumerate(found["eval"])]),
        "rubric": vf.Rubric(funcs=[score]),
    }
    return Dialogues(made, **settings) if isinstance(made, DialogueTask) else Questions(made, **settings)


def _row(problem: Problem, split: Split, number: int) -> dict[str, Any]:
    """A row of a dataset; what is needed to judge it stays with the task."""
    return {"prompt": opening_of(problem), "answer": "", "info": {"id": problem.id, "split": split, "number": number}}


async def score(state: Mapping[str, Any]) -> float:
    """What the environment found a rollout to be worth."""
    return state["operant_score"]


class Questions(vf.SingleTurnEnv):
    """Problems that one answer settles (final)."""

    def __init__(self, task: Task, **settings: Any) -> None:
        self.task = task
        super().__init__(**settings)

    async def setup_state(self, state: Any) -> None:
        """Answers end where the problem says."""
        _limit(state, _problem(self.task, state))

    @vf.cleanup
    async def judge(self, state: Any) -> None:
        """Have the answer judged; the policy's silence is an answer too."""
        text = _last(state) if state["trajectory"] else ""
        _keep(state, await judged(self.task, _problem(self.task, state), text))


class Dialogues(vf.MultiTurnEnv):
    """Problems that are worked on in turns, each in a world of its own (final).

    The most turns are counted here: where verifiers counts them, the world would never hear the last one.
    """

    def __init__(self, task: DialogueTask, **settings: Any) -> None:
        self.task = task
        super().__init__(max_turns=-1, **settings)

    async def setup_state(self, state: Any) -> None:
        """Open the world."""
        problem = _problem(self.task, state)
        _limit(state, problem)
        state["operant_talk"] = Talk(self.task, problem)
        state["prompt"] = [_typed(message) for message in await state["operant_talk"].begin()]

    async def env_response(self, messages: Any, state: Any, **_: Any) -> list[Any]:
        """The world's answer."""
        last = state["trajectory"][-1]
        told, done = await state["operant_talk"].hear(_last(state), bool(last["is_truncated"]))
        response = [_typed(message) for message in told]
        if done:
            state["final_env_response"] = response
        return response

    @vf.cleanup
    async def judge(self, state: Any) -> None:
        """Ask the world for its verdict, and close it."""
        talk = state.pop("operant_talk", None)
        if talk is None:
            _keep(state, Verdict(None, "error", note="the world could not be opened"))
            return
        try:
            _keep(state, await talk.verdict())
        finally:
            await talk.close()


def _problem(task: Task, state: Any) -> Problem:
    return task.problems(state["info"]["split"])[state["info"]["number"]]


def _limit(state: Any, problem: Problem) -> None:
    """Where nobody says otherwise, answers end as the problem has it."""
    said = {key: value for key, value in (state["sampling_args"] or {}).items() if value is not None}
    limits = {"max_tokens": problem.max_tokens, **({"stop": list(problem.stop)} if problem.stop else {})}
    state["sampling_args"] = {**limits, **said}


def _last(state: Any) -> str:
    """What the policy said last."""
    message = state["trajectory"][-1]["completion"][-1]
    content = message["content"] if isinstance(message, dict) else message.content
    return content if isinstance(content, str) else ""


def _keep(state: Any, verdict: Verdict) -> None:
    """Leave a verdict for the score; judging that failed is an error, and nobody's bad answer."""
    state["operant_score"] = verdict.score or 0.0
    if verdict.score is None and state.get("error") is None:
        state["error"] = vf.InfraError(verdict.note)


def _typed(message: Mapping[str, str]) -> Any:
    kinds = {"system": vf.SystemMessage, "user": vf.UserMessage, "assistant": vf.AssistantMessage}
    return kinds[message["role"]](content=message["content"])
