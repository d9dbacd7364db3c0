"""A round of answers with given rewards and lengths, and the gradients that a learner makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.generation.generator import Completion, Prompt, Sampling, Step
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.task import Verdict
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

TINY = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 48}}


def spec_of(rewards: Sequence[Sequence[float]], **algorithm: Any) -> Spec:
    """An algorithm whose rounds have such groups; those that lack answers count as full."""
    size = max(len(group) for group in rewards)
    text = {"arguments": {"style": "bare", "letters": 2}, "max_tokens": 4}
    settings = {"group_size": size, "batch_size": size * len(rewards), **algorithm}
    agent = {"algorithm": settings, "model": TINY}
    return Spec.model_validate({"env": {"name": "copy", "max_frame": 1000, "text": text}, "agent": agent})


@contextmanager
def context_of(spec: Spec) -> Iterator[TrainingContext]:
    """A lab that computes on the policy's weights."""
    with build_context(spec, Seeds(3)) as context:
        context.learner.snapshot_reference()
        yield context


def played(context: TrainingContext, rewards: Sequence[Sequence[float]]) -> list[Group]:
    """Groups of answers of 1 to 4 tokens with these rewards; one that has fewer lacks the others."""
    sampling = Sampling(context.settings.group_size, context.settings.temperature, seed=5)
    problems, lengths = context.sampler.take(0, len(rewards)), cycle((1, 4, 3, 2, 4))
    prompts = [context.worker.prompt(problem) for problem in problems]
    written = context.worker.generator.generate(prompts, sampling)
    return [
        Group(problem, prompt, tuple(_answer(prompt, *each) for each in zip(texts, lengths, row, strict=False)))
        for problem, prompt, texts, row in zip(problems, prompts, written, rewards, strict=True)
    ]


def _answer(prompt: Prompt, written: Completion, length: int, reward: float) -> Answer:
    short = replace(written, tokens=written.tokens[:length], logprobs=written.logprobs[:length])
    return Answer((Step(prompt.tokens, short),), Verdict(reward, "right"), reward)


def gradients(context: TrainingContext, groups: Sequence[Group]) -> list[dict[str, Tensor]]:
    """The gradient of each step of a round, none of which moves the weights."""
    found: list[dict[str, Tensor]] = []
    optimizer = context.learner.optimizer

    def look(update: int, share: float) -> float:
        del update, share
        found.append({name: weight.grad.clone() for name, weight in optimizer.named.items() if weight.grad is not None})
        optimizer.clear()
        return 0.0

    optimizer.step = look  # pyright: ignore[reportAttributeAccessIssue]
    context.learner.learn(groups, Progress(), 1000)
    return found


def logprobs(context: TrainingContext, answer: Answer) -> Tensor:
    """The log-probability of each token of an answer, by a plain pass over it alone."""
    (step,) = answer.steps
    line = [*step.prompt, *step.completion.tokens]
    logits = context.policy.model(input_ids=torch.tensor([line])).logits[0].float()
    chosen = torch.log_softmax(logits / context.settings.temperature, -1)
    places = range(len(step.prompt) - 1, len(line) - 1)
    return torch.stack([chosen[place, line[place + 1]] for place in places])


def weighted(
    context: TrainingContext, groups: Sequence[Group], weights: Sequence[Sequence[float]]
) -> dict[str, Tensor]:
    """The gradient of -sum(w log pi), where each answer has a weight for each of its tokens."""
    answers = [answer for group in groups for answer in group.answers]
    total = sum(
        (-(torch.tensor(row) * logprobs(context, answer)).sum() for answer, row in zip(answers, weights, strict=True)),
        torch.zeros(()),
    )
    named = context.learner.optimizer.named
    found = torch.autograd.grad(total, list(named.values()), allow_unused=True)
    return {name: slope for name, slope in zip(named, found, strict=True) if slope is not None}


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Two gradients agree, relative to the largest part of the second, which is not zero."""
    largest = max(float(slope.abs().max()) for slope in wanted.values())
    assert largest > 1e-6, "a gradient of zero would prove nothing"
    for name, slope in wanted.items():
        torch.testing.assert_close(found[name], slope, rtol=0, atol=2e-5 * largest, msg=name)
