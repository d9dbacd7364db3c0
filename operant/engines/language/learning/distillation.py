"""Distillation from a teacher's likeliest tokens: what it says of the policy's completions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from operant.engines.language.distributed.fsdp import Scorer
from operant.engines.language.learning.samples import TrainingSample
from operant.engines.language.policy.batching import Batch, micro_batches

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
