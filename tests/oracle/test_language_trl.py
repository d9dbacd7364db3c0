"""The same random batch through the losses of TRL's trainer, where TRL is installed."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch

from operant.engines.language.learning.losses import LossSettings, Normalizer, Tokens, policy_loss
from tests.oracle.language_presets import preset

pytest.importorskip("trl", reason="TRL is not installed")

LENGTHS = (5, 2, 7, 1, 6)
LONGEST = 8

CASES: dict[str, tuple[LossSettings, dict[str, object]]] = {
    "grpo": (preset("grpo", kl_coef=0.04), {"loss_type": "grpo", "beta": 0.04}),
    "dr_grpo": (preset("dr_grpo", length=LONGEST), {"loss_type": "dr_grpo"}),
    "dapo": (preset("dapo"), {"loss_type": "dapo", "epsilon_high": 0.28}),
    "gspo": (
        preset("gspo", clip_low=0.03, clip_high=0.04),
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 0.03, "epsilon_high": 0.04},
    ),
    "cispo": (preset("cispo", clip_high=0.3), {"loss_type": "cispo", "epsilon_high": 1.3}),
}


def fake_trainer(logprobs: torch.Tensor, changes: dict[str, object]) -> MagicMock:
    """An object with what TRL's loss asks of its trainer, whose model answers with given log-probabilities."""
    trainer = MagicMock()
    settings: dict[str, object] = {
        "beta": 0.0,
        "epsilon_low": 0.2,
        "epsilon_high": 0.2,
        "importance_sampling_level": "token",
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "use_vllm": False,
        "aux_loss_enabled": False,
        "max_completion_length": LONGEST,
        "current_gradient_accumulation_steps": 1,
        "_entropy_bonus_enabled": False,
        "_metrics": {"train": defaultdict(list)},
    }
    for name, value in (settings | changes).items():
        setattr(trainer, name, value)
    trainer.args = SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1)
    trainer.model = SimpleNamespace(training=True)
    trainer.accelerator = SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x)
    trainer._get_per_token_logps_and_entropies.return_value = (logprobs, torch.zeros_like(logprobs), None)
    return trainer


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_agree(name: str) -> None:
    from trl import GRPOTrainer  # pyright: ignore[reportMissingImports]

    settings, changes = CASES[name]
    draw = torch.Generator().manual_seed(3)
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).float()
    old = -3 * torch.rand(mask.shape, generator=draw)
    new = (old + 0.3 * torch.randn(mask.shape, generator=draw)).requires_grad_()
    reference = old + 0.2 * torch.randn(mask.shape, generator=draw)
    advantages = torch.randn(len(LENGTHS), generator=draw)
    inputs = {
        "prompt_ids": torch.zeros(len(LENGTHS), 2, dtype=torch.long),
        "prompt_mask": torch.ones(len(LENGTHS), 2),
        "completion_ids": torch.zeros(mask.shape, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": reference,
        "num_items_in_batch": mask.sum(),
    }
    theirs = GRPOTrainer._compute_loss(fake_trainer(new, changes), None, inputs)
    (their_slope,) = torch.autograd.grad(theirs, new)

    at = mask.bool()
    owner = torch.arange(len(LENGTHS))[:, None].expand(mask.shape)[at]
    ours = policy_loss(
        Tokens(new[at], old[at], old[at], advantages[owner], owner, reference[at]),
        settings,
        Normalizer(tokens=sum(LENGTHS), sequences=len(LENGTHS)),
    )
    (our_slope,) = torch.autograd.grad(ours.value, new)
    torch.testing.assert_close(ours.value, theirs, atol=1e-5, rtol=0)
    torch.testing.assert_close(our_slope, their_slope, atol=1e-5, rtol=0)
