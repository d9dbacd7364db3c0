"""Weights spread over processes by torch's FSDP2, and brought together again.

Every process holds an equal slice of each weight, of its gradient and of the optimizer's moments; a layer is whole
only while it computes. Gradients are summed, not averaged, because losses are divided by the whole batch already.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.policy.batching import Batch
from operant.engines.language.policy.logprobs import TokenScores, token_logprobs
from operant.engines.language.policy.shared_prompts import enable_shared_prompts


class Scorer(nn.Module):
    """A model as a function from a batch to the log-probabilities of its tokens, and more if asked for (final).

    The head belongs to it, so that one pass is one call even where the weights are spread over processes. Completions
    should share a prompt where that saves the part `share_from` of their tokens; never if it is None.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.share_from = enable_shared_prompts(model)

    def forward(
        self,
        batch: Batch,
        temperature: float,
        entropy: bool = False,
        others: Tensor | None = None,
        top: int = 0,
        mask: Tensor | None = None,
    ) -> TokenScores:
        """What `token_logprobs` gives of the completion tokens, in the batch's order."""
        return token_logprobs(self.model, batch, temperature, entropy=entropy, others=others, top=top, mask=mask)


def shard_model(scorer: Scorer, ranks: Ranks) -> Scorer:
    """The scorer with its weights spread over the processes, layer by layer; as it is where there is but one."""
    if ranks.alone:
        return scorer
    device = next(scorer.parameters()).device.type
    mesh = init_device_mesh(device, (ranks.size,))
    policy = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    for part in (*_layers(scorer.model), scorer):
        fully_shard(part, mesh=mesh, mp_policy=policy)
        assert isinstance(part, FSDPModule)
        part.set_force_sum_reduction_for_comms(True)
        part.set_gradient_divide_factor(1.0)
    return scorer


def _layers(model: Any) -> list[nn.Module]:
    """The layers of a Hugging Face decoder; none where they are not in one list, and the model is then one part."""
    count = model.config.get_text_config().num_hidden_layers
    lists = (module for module in model.modules() if isinstance(module, nn.ModuleList))
    return list(next((each for each in lists if len(each) == count), ()))


@torch.no_grad()
def frozen_copy(scorer: Scorer, ranks: Ranks) -> Scorer:
    """A copy that never learns, spread as the original is."""
    if ranks.alone:
        return Scorer(copy.deepcopy(scorer.model)).eval().requires_grad_(False)
    original: Any = scorer.model
    weight = next(original.parameters())
    with torch.random.fork_rng(devices=[]):
        model = type(original)(copy.deepcopy(original.config)).to(device=weight.device, dtype=weight.dtype)
    twin = shard_model(Scorer(model), ranks)
    for own, theirs in zip(twin.parameters(), scorer.parameters(), strict=True):
        own.copy_(theirs)
    return twin.eval().requires_grad_(False)


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor in one piece; all processes ask for it together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shard_like(whole_tensor: Tensor, example: Tensor) -> Tensor:
    """This process's part of a tensor that is to be spread as `example` is, on its device."""
    here = whole_tensor.to(example.device)
    if not isinstance(example, DTensor):
        return here
    return distribute_tensor(here, example.device_mesh, example.placements, src_data_rank=None)
