"""Supervised learning: of gold answers or given examples, before the first completion, beside rewards, or alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from operant.engines.language.config import text_of
from operant.engines.language.generation.generator import Completion, Step
from operant.engines.language.generation.transcript import new_transcript
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.chat_template import Template, bare_tokens
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.types import Answer
from operant.envs.text.dialogue import DialogueTask, Played, Scripted, play_script
from operant.envs.text.examples import Example
from operant.envs.text.task import Problem, Task
from operant.errors import UsageError
from operant.spec.schedules import value_at
from operant.spec.settings.language import DialogueSpec
from operant.spec.settings.supervised import WarmupSpec

if TYPE_CHECKING:
    from operant.engines.language.build import TrainingContext


def warm_up(context: TrainingContext, settings: WarmupSpec, advance: Callable[[int, int], None]) -> dict[str, float]:
    """Take the gradient steps, telling `advance` of each; returns the mean loss of the first and last tenth of them."""
    context.learner.on_supervised_step = advance
    batches = [
        gold_samples(
            context, [context.sampler.take(position, 1)[0] for position in _positions(context, settings, update)]
        )
        for update in range(settings.updates)
    ]
    losses = context.learner.supervised_steps(batches, settings.lr)
    tenth = max(1, settings.updates // 10)
    return {"warmup/first_loss": float(np.mean(losses[:tenth])), "warmup/last_loss": float(np.mean(losses[-tenth:]))}


def imitated(context: TrainingContext, problems: Sequence[Problem]) -> list[list[Sample]]:
    """What the gradient steps of a round imitate beside its completions, a batch for each; nothing without a weight.

    Batches of examples follow each other with the updates of the run; gold answers are those of the round's problems.
    """
    settings, updates = context.settings, context.tracker.updates
    if not value_at(settings.sft_coef, context.tracker.frames):
        return []
    if context.examples is None:
        return [gold_samples(context, problems)]
    size, steps = settings.sft_batch_size, settings.updates_per_round
    return [example_samples(context, (updates + step) * size, size) for step in range(steps)]


def next_examples(context: TrainingContext) -> list[Sample]:
    """The next batch of supervised learning alone."""
    position, count = context.tracker.position, context.settings.batch_size
    if context.examples is None:
        return gold_samples(context, context.sampler.take(position, count))
    return example_samples(context, position, count)


def example_samples(context: TrainingContext, position: int, count: int) -> list[Sample]:
    """Examples of the run's file as samples to imitate."""
    assert context.examples is not None
    return [_example_sample(context, example) for example in context.examples.take(position, count)]


def _example_sample(context: TrainingContext, example: Example) -> Sample:
    """An example in tokens; what is too long for the model is cut off, the answer's end first."""
    data, policy, text = context.sft_data, context.policy, text_of(context.spec)
    assert data is not None
    system, prefix = example.system or text.system or None, example.prefix or text.prefix
    asked = Problem("example", "examples", example.prompt, None, system, prefix)
    prompt = context.worker.prompt(asked).tokens
    tokens = (
        as_completion(policy, example.completion).tokens
        if data.end_of_text
        else bare_tokens(example.completion, policy)
    )
    room = policy.context + 1 - min(len(prompt), policy.context)
    return Sample(prompt[-policy.context :], tuple(tokens[: min(room, data.max_tokens or room)]))


def gold_samples(context: TrainingContext, problems: Sequence[Problem]) -> list[Sample]:
    """Gold answers of problems, end of text included, as samples to imitate; of dialogues a novice agent's rollouts."""
    tasks = {task.name: task for task in context.sampler.tasks}
    samples: list[Sample] = []
    for problem in problems:
        task = tasks[problem.task]
        if isinstance(task, DialogueTask):
            samples += _demonstration(context, problem, task)
        else:
            samples.append(_gold_sample(context, problem, task))
    return samples


def _gold_sample(context: TrainingContext, problem: Problem, task: Task) -> Sample:
    answer = task.gold(problem)
    if answer is None:
        raise _nothing_to_imitate(problem, "gold answer")
    said = as_completion(context.policy, answer.removeprefix(problem.prefix))
    return Sample(context.worker.prompt(problem).tokens, said.tokens)


def _demonstration(context: TrainingContext, problem: Problem, task: DialogueTask) -> list[Sample]:
    """A rollout of the task's novice agent, which knows the form of an answer but no good one; made once and kept."""
    if problem.id not in context.demonstrations:
        novice = _novice(task)
        if novice is None:
            raise _nothing_to_imitate(problem, "novice")
        settings = text_of(context.spec).dialogue
        played = play_script(task, problem, novice, turns=settings.turns)
        answer = as_answer(played, context.policy, context.worker.template, settings)
        context.demonstrations[problem.id] = [written.tokens for written in samples_of(answer)]
    return context.demonstrations[problem.id]


def refuse_without_gold(task: Task, problem: Problem) -> None:
    """`UsageError` if a problem of the task has no gold answer, or a dialogue no novice agent, to imitate."""
    if isinstance(task, DialogueTask):
        if _novice(task) is None:
            raise _nothing_to_imitate(problem, "novice")
    elif task.gold(problem) is None:
        raise _nothing_to_imitate(problem, "gold answer")


def _novice(task: DialogueTask) -> Scripted | None:
    return next((agent for agent in task.agents().values() if agent.kind == "novice"), None)


def as_answer(played: Played, policy: Policy, template: Template, settings: DialogueSpec) -> Answer:
    """A scripted rollout as if a policy had written it, without log-probabilities."""
    transcript, steps = new_transcript(policy, template, played.opening, settings), []
    for exchange in played.exchanges:
        completion = as_completion(policy, exchange.text)
        steps.append(Step(transcript.tokens, completion))
        transcript.add(completion, exchange.response.messages)
    return Answer(tuple(steps), played.verdict, 0.0, interleaved=settings.strategy == "interleaved")


def as_completion(policy: Policy, text: str) -> Completion:
    """A text as a completion that ends by itself."""
    tokens = policy.tokenizer.encode(text, add_special_tokens=False)
    return Completion((*tokens, policy.eos_ids[0]), (), text, "stop")


def _nothing_to_imitate(problem: Problem, lacking: str) -> UsageError:
    return UsageError(
        f"{problem.id} has no {lacking} to learn from",
        remedy="leave out agent.algorithm.warmup and agent.algorithm.sft_coef",
    )


def _positions(context: TrainingContext, settings: WarmupSpec, update: int) -> list[int]:
    """Which problems a step learns from: one after the other, or again and again the first few."""
    first = update * settings.batch_size
    if settings.problems is None:
        return list(range(first, first + settings.batch_size))
    drawn = context.seeds.rng("warmup", update).integers(settings.problems, size=settings.batch_size)
    return [int(position) for position in drawn]
