"""How a teacher is asked whose prompts are not the policy's: by its chat template, or with the answer told first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from operant.engines.language.rollouts.single_turn import render
from operant.engines.language.rollouts.types import Group
from operant.envs.text.task import Problem, Task
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.build import TrainingContext


def with_teacher_prompts(context: TrainingContext, groups: Sequence[Group]) -> Sequence[Group]:
    """The groups with the prompts that the teacher is asked with, where those are not the policy's."""
    settings, teacher = context.settings, context.learner.teacher_policy or context.policy
    if settings.teacher is None or settings.teacher_prompt == "same":
        return groups
    if settings.teacher_prompt == "chat":
        return [replace(group, teacher_prompt=render(group.problem, teacher).tokens) for group in groups]
    tasks = {task.name: task for task in context.sampler.tasks}
    told = [answer_first_prompt(tasks[group.problem.task], group.problem) for group in groups]
    template = context.worker.template
    return [
        replace(group, teacher_prompt=render(problem, context.policy, template).tokens)
        for group, problem in zip(groups, told, strict=True)
    ]


def answer_first_prompt(task: Task, problem: Problem) -> Problem:
    """The problem with its answer told first, then asked again for a solution."""
    answer = task.hint(problem)
    if answer is None:
        raise UsageError(
            f"{problem.id} has no answer to tell the teacher", remedy="agent.algorithm.teacher_prompt same, or chat"
        )
    asked = problem.prompt + problem.prefix
    return replace(problem, prompt=f"{asked} {answer}\n\nSolution:\n{problem.prompt}")
