"""What is learnt from: completions with their advantages, and the log-probabilities they were drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from operant.engines.language.generation.generator import Step
from operant.engines.language.learning.advantages import compute_advantages
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.rollouts.types import Answer, Group
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

SOLVED = 1.0 - 1e-6


@dataclass(frozen=True)
class TrainingSample:
    """A completion to train on; `logprobs` are the generator's, one for each token of the completion.

    A teacher is asked with `teacher_prompt` where that is another prompt than the policy's. `masks` say one after the
    other what truncated sampling left to draw from; none where it did not truncate.
    """

    tokens: Sample
    logprobs: tuple[float, ...]
    advantage: float
    teacher_prompt: tuple[int, ...] | None = None
    masks: tuple[SamplingMask, ...] = ()

    @property
    def for_teacher(self) -> Sample:
        """The completion after the prompt that the teacher is asked with."""
        return self.tokens if self.teacher_prompt is None else replace(self.tokens, prompt=self.teacher_prompt)


def training_samples(groups: Sequence[Group], settings: VerifiedAlgorithm) -> list[list[TrainingSample]]:
    """The samples of a round, answer by answer, with their advantages; answers cut off only if the spec says so."""
    chosen = chosen_groups(groups, settings)
    answers = [answer for group in chosen for answer in group.answers]
    asked = [group.teacher_prompt for group in chosen for _ in group.answers]
    if not answers:
        return []
    rewards = np.array([answer.reward for answer in answers])
    numbers = np.repeat(np.arange(len(chosen)), [len(group.answers) for group in chosen])
    lengths = np.array([answer.length for answer in answers])
    advantages = compute_advantages(settings.credit, rewards, numbers, settings.scale, lengths)
    return [
        [
            TrainingSample(written.tokens, written.logprobs, float(advantage), prompt, written.masks)
            for written in samples_of(answer)
        ]
        for answer, advantage, prompt in zip(answers, advantages, asked, strict=True)
        if _is_learnt(answer, settings)
    ]


def minibatches(answers: Sequence[list[TrainingSample]], size: int) -> list[list[TrainingSample]]:
    """The samples of a round's gradient steps: as many steps as bring them closest to `size` answers, all alike.

    Two of them differ by one answer at most.
    """
    steps = max(1, (2 * len(answers) + size) // (2 * size))
    bounds = [len(answers) * step // steps for step in range(steps + 1)]
    return [list(chain(*answers[start:end])) for start, end in pairwise(bounds)]


class Written(NamedTuple):
    """Tokens with what the generator said of those that it wrote."""

    tokens: Sample
    logprobs: tuple[float, ...]
    masks: tuple[SamplingMask, ...]


def samples_of(answer: Answer) -> list[Written]:
    """What an answer gives to learn from, with the generator's log-probabilities: a sample for every step.

    Steps of an `interleaved` answer whose prompt goes on exactly where the step before ended are one sample, in which
    what others said is read but not learnt; where the tokens do not go on exactly, a new sample begins.
    """
    samples: list[Written] = []
    for step in answer.steps:
        completion = step.completion
        if not completion.tokens:
            continue
        masks = () if completion.mask is None else (completion.mask,)
        if answer.interleaved and samples and (longer := _extended(samples[-1].tokens, step)) is not None:
            before = samples[-1]
            samples[-1] = Written(longer, before.logprobs + completion.logprobs, before.masks + masks)
        else:
            samples.append(Written(Sample(step.prompt, completion.tokens), completion.logprobs, masks))
    return samples


def _extended(sample: Sample, step: Step) -> Sample | None:
    """The sample gone on by a step, if the step's prompt begins with all of the sample."""
    so_far = sample.prompt + sample.completion
    if step.prompt[: len(so_far)] != so_far:
        return None
    said = sample.completion + step.prompt[len(so_far) :]
    written = range(len(said), len(said) + len(step.completion.tokens))
    return Sample(sample.prompt, said + step.completion.tokens, (*sample.places, *written))


def chosen_groups(groups: Sequence[Group], settings: VerifiedAlgorithm) -> list[Group]:
    """The groups of a round that are learnt from."""
    answered = [group for group in groups if group.answers]
    if settings.zero_variance == "keep":
        return answered
    return [group for group in answered if group.has_signal][: settings.batch_size // settings.group_size]


def _is_learnt(answer: Answer, settings: VerifiedAlgorithm) -> bool:
    cut_off = settings.overlong == "mask" and answer.completion.finish == "length"
    solved = settings.learn_from == "unsolved" and answer.reward >= SOLVED
    return answer.length > 0 and not cut_off and not solved
