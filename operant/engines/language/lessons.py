"""What is learnt from: completions with their advantages, and the log-probabilities they were drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operant.engines.language.credit import credit
from operant.engines.language.pack import Sample
from operant.engines.language.rollout import Answer, Group
from operant.spec.rlvr import VerifiedAlgorithm


@dataclass(frozen=True)
class Lesson:
    """A completion to learn from; `logprobs` are the generator's, one for each token of the completion."""

    sample: Sample
    logprobs: tuple[float, ...]
    advantage: float


def lessons_of(groups: Sequence[Group], settings: VerifiedAlgorithm) -> list[Lesson]:
    """The lessons of a round: groups that teach, credited; completions that were cut off only if the spec says so."""
    chosen = chosen_groups(groups, settings)
    answers = [(group, answer) for group in chosen for answer in group.answers]
    if not answers:
        return []
    rewards = np.array([answer.reward for _, answer in answers])
    numbers = np.repeat(np.arange(len(chosen)), [len(group.answers) for group in chosen])
    advantages = credit(settings.credit, rewards, numbers, settings.scale).advantages
    return [
        Lesson(Sample(group.prompt.tokens, answer.completion.tokens), answer.completion.logprobs, float(advantage))
        for (group, answer), advantage in zip(answers, advantages, strict=True)
        if _is_learnt(answer, settings)
    ]


def chosen_groups(groups: Sequence[Group], settings: VerifiedAlgorithm) -> list[Group]:
    """The groups of a round that are learnt from."""
    answered = [group for group in groups if group.answers]
    if settings.zero_variance == "keep":
        return answered
    return [group for group in answered if group.teaches][: settings.batch_size // settings.group_size]


def _is_learnt(answer: Answer, settings: VerifiedAlgorithm) -> bool:
    cut_off = settings.overlong == "mask" and answer.completion.finish == "length"
    return bool(answer.completion.tokens) and not cut_off
