"""The reference of a KL term: the policy as it was, which never learns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from operant.engines.language.distributed.fsdp import Scorer, frozen_copy
from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.policy.batching import Batch
from operant.engines.language.policy.logprobs import TokenScores


class Reference:
    """A policy as it is when this is made (final).

    With LoRA the weights that never change are the policy's own, and only the adapters are kept a second time;
    otherwise it is a whole copy. `weights` are those that the policy trains, by name, as the reference has them.
    """

    def __init__(self, scorer: Scorer, ranks: Ranks) -> None:
        trained = {name: weight for name, weight in scorer.model.named_parameters() if weight.requires_grad}
        self.adapters = hasattr(scorer.model, "peft_config")
        self.scorer = scorer if self.adapters else frozen_copy(scorer, ranks)
        if self.adapters:
            self.weights = {name: weight.detach().clone() for name, weight in trained.items()}
        else:
            own = dict(self.scorer.model.named_parameters())
            self.weights: dict[str, Tensor] = {name: own[name] for name in trained}

    @torch.no_grad()
    def __call__(self, batch: Batch, temperature: float, mask: Tensor | None = None) -> TokenScores:
        """What the reference says of the completion tokens of a batch."""
        if not self.adapters:
            return self.scorer(batch, temperature, mask=mask)
        model: Any = self.scorer.model
        kept, training = {f"model.{name}": weight for name, weight in self.weights.items()}, model.training
        model.eval()  # the dropout of adapters belongs to the policy that learns
        try:
            return functional_call(self.scorer, kept, (batch, temperature), {"mask": mask})
        finally:
            model.train(training)
