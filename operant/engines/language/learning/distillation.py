"""Distillation from a teacher's likeliest tokens: how it is asked, and what it says of the policy's completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from operant.engines.language.distributed.fsdp import Scorer
from operant.engines.language.learning.samples import TrainingSample
from operant.engines.language.policy.batching import Batch, micro_batches
from operant.engines.language.rollouts.single_turn import render
from operant.engines.language.rollouts.types import Group
from operant.envs.text.task import Problem, Task
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.build import TrainingContext

SELF = "self"
ONE_PASS = 1 << 62


def likeliest(
    teacher: Scorer, batch: Batch, samples: Sequence[TrainingSample], top: int, temperature: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """The teacher's `top` likeliest tokens in the place of each token of a micro-batch, and their log-probabilities.

    `samples` are those of the micro-batch in its order. A teacher that is asked otherwise reads rows of its own, in one
    pass too, for all processes make the same number of them.
    """
    if all(sample.teacher_prompt is None for sample in samples):
        found = teacher(batch, temperature, top=top).top
        assert found is not None
        return found
    (asked,) = micro_batches([sample.for_teacher for sample in samples], ONE_PASS, pad_id=pad_id)
    found = teacher(asked.to(batch.tokens.device), temperature, top=top).top
    assert found is not None
    order = asked.owner.argsort(stable=True).to(batch.tokens.device)
    return found[0][order], found[1][order]


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
