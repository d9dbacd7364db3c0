"""From settings and prompts to what the device will hold: the micro-batches that the trainer would really make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from operant.engines.language.memory.activations import PassShape
from operant.engines.language.memory.estimate import Generation, TrainingPlan
from operant.engines.language.memory.model_sizes import ModelSizes
from operant.engines.language.policy.batching import Sample, passes
from operant.engines.language.policy.shared_prompts import SAVING_ON_CPU, SAVING_ON_GPU
from operant.spec.settings.language import ModelSpec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm


@dataclass(frozen=True)
class Round:
    """The prompts of a round and the longest completion of each, written `group_size` times; the evaluations' prompts.

    `generates` is False where nothing is generated on the device that trains.
    """

    prompts: Sequence[tuple[int, ...]]
    completions: Sequence[int]
    group_size: int
    evaluated: int = 0
    generates: bool = True

    @property
    def longest(self) -> int:
        """Tokens of the longest text."""
        return max(len(prompt) + length for prompt, length in zip(self.prompts, self.completions, strict=True))

    @property
    def samples(self) -> list[Sample]:
        """All completions of the round, each as long as it may become."""
        pairs = zip(self.prompts, self.completions, strict=True)
        return [Sample(prompt, (0,) * length) for prompt, length in pairs for _ in range(self.group_size)]


def training_plan(
    sizes: ModelSizes,
    settings: VerifiedAlgorithm,
    model: ModelSpec,
    round_: Round,
    *,
    on_gpu: bool = True,
    processes: int = 1,
    teacher: int = 0,
) -> TrainingPlan:
    """What a run of these settings does; `teacher` are the weights of the model that it learns from."""
    samples, step = round_.samples, settings.step_size
    batches = [_shapes(sizes, settings, samples[at : at + step], on_gpu) for at in range(0, len(samples), step)]
    copies = teacher
    if settings.kl != "none":
        copies += sizes.trained if sizes.adapters else sizes.parameters
    if settings.staleness and model.generator == "torch":
        copies += 2 * sizes.parameters + sizes.fused  # a generator beside the trainer, and weights on the way to it
    return TrainingPlan(
        shapes=[shape for some in batches for shape in some],
        passes=max(len(some) for some in batches),
        checkpointing=model.gradient_checkpointing,
        moments=0 if model.optimizer.name == "sgd" else 2,
        copies=copies,
        scores=_scores(settings),
        entropy=bool(settings.entropy_coef),
        masked=settings.truncates,
        generation=_generation(settings, model, round_) if round_.generates else None,
        processes=processes,
        on_gpu=on_gpu,
    )


def _shapes(sizes: ModelSizes, settings: VerifiedAlgorithm, samples: Sequence[Sample], on_gpu: bool) -> list[PassShape]:
    """The micro-batches of a gradient step."""
    share_from = (SAVING_ON_GPU if on_gpu else SAVING_ON_CPU) if sizes.packs else None
    packing = settings.packing and sizes.packs
    planned = passes(samples, settings.pass_tokens, share_from=share_from, packing=packing)
    return [PassShape.of(each, samples) for each in planned]


def _scores(settings: VerifiedAlgorithm) -> bool:
    """Whether log-probabilities are computed before the gradient steps."""
    several = settings.updates_per_round > 1 and settings.compares_with == "trainer"
    return several or settings.kl != "none" or settings.teacher is not None


def _generation(settings: VerifiedAlgorithm, model: ModelSpec, round_: Round) -> Generation:
    prompt, completion = max(map(len, round_.prompts)), max(round_.completions)
    rows = min(model.slots, max(len(round_.prompts) * round_.group_size, round_.evaluated))
    read = min(len(round_.prompts), -(-rows // round_.group_size))
    return Generation(
        rows=rows,
        prompts=max(read, min(rows, round_.evaluated)),
        prompt_length=prompt,
        length=prompt + completion,
        completion=completion,
        masks=settings.truncates,
        sorts=settings.top_p < 1,
    )
