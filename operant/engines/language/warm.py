"""The supervised warm-up: gold answers of training problems, before the first completion is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from operant.engines.language.pack import Sample
from operant.envs.text.task import Problem
from operant.errors import UsageError
from operant.spec.rlvr import WarmupSpec

if TYPE_CHECKING:
    from operant.engines.language.build import Lab


def warm_up(lab: Lab, settings: WarmupSpec) -> dict[str, float]:
    """Take the gradient steps; returns the mean loss of the first and of the last tenth of them."""
    batches = [
        gold_samples(lab, [lab.course.take(position, 1)[0] for position in _positions(lab, settings, update)])
        for update in range(settings.updates)
    ]
    losses = lab.learner.rehearse(batches, settings.lr)
    tenth = max(1, settings.updates // 10)
    return {"warmup/first_loss": float(np.mean(losses[:tenth])), "warmup/last_loss": float(np.mean(losses[-tenth:]))}


def gold_samples(lab: Lab, problems: Sequence[Problem]) -> list[Sample]:
    """Gold answers of problems, end of text included, as samples to imitate."""
    tasks = {part.task.name: part.task for part in lab.course.parts}
    samples = []
    for problem in problems:
        answer = tasks[problem.task].gold(problem)
        if answer is None:
            raise UsageError(
                f"{problem.id} has no gold answer to learn from",
                remedy="leave out agent.algorithm.warmup and agent.algorithm.sft_coef",
            )
        text = answer.removeprefix(problem.prefix)
        tokens = [*lab.policy.tokenizer.encode(text, add_special_tokens=False), lab.policy.eos_ids[0]]
        samples.append(Sample(lab.rounds.prompt(problem).tokens, tuple(tokens)))
    return samples


def _positions(lab: Lab, settings: WarmupSpec, update: int) -> list[int]:
    """Which problems a step learns from: one after the other, or again and again the first few."""
    first = update * settings.batch_size
    if settings.problems is None:
        return list(range(first, first + settings.batch_size))
    drawn = lab.seeds.rng("warmup", update).integers(settings.problems, size=settings.batch_size)
    return [int(position) for position in drawn]
