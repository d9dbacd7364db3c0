"""What is learnt from: one completion with its prompt, its advantage, and the log-probabilities it was drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operant.engines.language.credit import advantages
from operant.engines.language.rollout import Answer, Group
from operant.spec.rlvr import VerifiedAlgorithm


@dataclass(frozen=True)
class Lesson:
    """A completion to learn from; `logprobs` are the generator's, one for each token of the completion."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    advantage: float


def lessons_of(groups: Sequence[Group], settings: VerifiedAlgorithm) -> list[Lesson]:
    """The lessons of a round: groups that teach, credited, less those that were cut off where the spec says so."""
    chosen = list(groups)
    if settings.zero_variance != "keep":
        chosen = [group for group in groups if group.teaches][: settings.batch_size // settings.group_size]
    chosen = [group for group in chosen if len(group.answers) > 1]
    if not chosen:
        return []
    credited = advantages([np.asarray(group.rewards) for group in chosen], settings.credit, settings.scale)
    return [
        Lesson(group.prompt.tokens, answer.completion.tokens, answer.completion.logprobs, float(advantage))
        for group, worth in zip(chosen, credited, strict=True)
        for answer, advantage in zip(group.answers, worth, strict=True)
        if _is_learnt(answer, settings)
    ]


def _is_learnt(answer: Answer, settings: VerifiedAlgorithm) -> bool:
    cut_off = settings.overlong == "mask" and answer.completion.finish == "length"
    return bool(answer.completion.tokens) and not cut_off
