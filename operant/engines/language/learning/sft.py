"""The supervised warm-up: gold answers of training problems, before the first completion is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from operant.engines.language.build import text_of
from operant.engines.language.generation.generator import Completion
from operant.engines.language.generation.transcript import Transcript
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.chat_template import Template
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.single_turn import Answer, Step
from operant.envs.text.dialogue import DialogueTask, Played, play_script
from operant.envs.text.task import Problem, Task
from operant.errors import UsageError
from operant.spec.settings.language_algorithms import WarmupSpec

if TYPE_CHECKING:
    from operant.engines.language.build import Lab


def warm_up(lab: Lab, settings: WarmupSpec, advance: Callable[[int, int], None]) -> dict[str, float]:
    """Take the gradient steps, telling `advance` of each; returns the mean loss of the first and last tenth of them."""
    lab.learner.rehearsed = advance
    batches = [
        gold_samples(lab, [lab.course.take(position, 1)[0] for position in _positions(lab, settings, update)])
        for update in range(settings.updates)
    ]
    losses = lab.learner.rehearse(batches, settings.lr)
    tenth = max(1, settings.updates // 10)
    return {"warmup/first_loss": float(np.mean(losses[:tenth])), "warmup/last_loss": float(np.mean(losses[-tenth:]))}


def gold_samples(lab: Lab, problems: Sequence[Problem]) -> list[Sample]:
    """Gold answers of problems, end of text included, as samples to imitate; of dialogues a novice's rollouts."""
    tasks = {task.name: task for task in lab.course.tasks}
    samples: list[Sample] = []
    for problem in problems:
        task = tasks[problem.task]
        if isinstance(task, DialogueTask):
            samples += _demonstration(lab, problem, task)
        else:
            samples.append(_gold_sample(lab, problem, task))
    return samples


def _gold_sample(lab: Lab, problem: Problem, task: Task) -> Sample:
    answer = task.gold(problem)
    if answer is None:
        raise _nothing_to_imitate(problem, "gold answer")
    said = written(lab.policy, answer.removeprefix(problem.prefix))
    return Sample(lab.rounds.prompt(problem).tokens, said.tokens)


def _demonstration(lab: Lab, problem: Problem, task: DialogueTask) -> list[Sample]:
    """A rollout of the task's novice, who knows the form of an answer but no good one; played once and kept."""
    if problem.id not in lab.demonstrations:
        novice = next((agent for agent in task.agents().values() if agent.kind == "novice"), None)
        if novice is None:
            raise _nothing_to_imitate(problem, "novice")
        settings = text_of(lab.spec).dialogue
        played = play_script(task, problem, novice, turns=settings.turns)
        answer = as_answer(played, lab.policy, lab.rounds.template, settings.strategy)
        lab.demonstrations[problem.id] = [sample for sample, _ in samples_of(answer)]
    return lab.demonstrations[problem.id]


def as_answer(played: Played, policy: Policy, template: Template, strategy: str) -> Answer:
    """A scripted rollout as if a policy had written it, without log-probabilities."""
    transcript, steps = Transcript(policy, template, played.opening, strategy == "branching"), []
    for exchange in played.exchanges:
        completion = written(policy, exchange.text)
        steps.append(Step(transcript.tokens, completion))
        transcript.add(completion, exchange.response.messages)
    return Answer(tuple(steps), played.verdict, 0.0, interleaved=strategy == "interleaved")


def written(policy: Policy, text: str) -> Completion:
    """A text as a completion that ends by itself."""
    tokens = policy.tokenizer.encode(text, add_special_tokens=False)
    return Completion((*tokens, policy.eos_ids[0]), (), text, "stop")


def _nothing_to_imitate(problem: Problem, lacking: str) -> UsageError:
    return UsageError(
        f"{problem.id} has no {lacking} to learn from",
        remedy="leave out agent.algorithm.warmup and agent.algorithm.sft_coef",
    )


def _positions(lab: Lab, settings: WarmupSpec, update: int) -> list[int]:
    """Which problems a step learns from: one after the other, or again and again the first few."""
    first = update * settings.batch_size
    if settings.problems is None:
        return list(range(first, first + settings.batch_size))
    drawn = lab.seeds.rng("warmup", update).integers(settings.problems, size=settings.batch_size)
    return [int(position) for position in drawn]
