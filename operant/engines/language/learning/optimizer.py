"""From gradients to steps: torch's optimizers on float32 copies of the weights.

A step of a language model is often smaller than bfloat16 can tell from nothing, so weights in half
precision are only the rounded image of what the optimizer keeps.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from operant.engines.language.distributed.fsdp import full_tensor, shard_like
from operant.spec.settings.language import LmOptimizerSpec


class Optimizer:
    """Steps the trainable weights of a model; `rate` is the learning rate of the last step."""

    def __init__(self, model: nn.Module, settings: LmOptimizerSpec) -> None:
        self.settings = settings
        self.named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.weights = list(self.named.values())
        self.masters = [_master(weight) for weight in self.weights]
        self.torch = _make(settings, self.masters)
        self.rate = 0.0

    def step(self, update: int, share: float) -> float:
        """Take step number `update`, with `share` of the budget spent; returns the norm of the gradient."""
        for weight, master in zip(self.weights, self.masters, strict=True):
            if weight is not master:
                master.grad = None if weight.grad is None else weight.grad.float()
                weight.grad = None  # one by one, so that there are never two sets of gradients
        norm = full_tensor(nn.utils.clip_grad_norm_(self.masters, self.settings.clip_grad_norm or float("inf")))
        if not torch.isfinite(norm):
            self.clear()
            return float(norm)
        self.rate = self.settings.lr * _factor(self.settings, update, share)
        for group in self.torch.param_groups:
            group["lr"] = self.rate
        self.torch.step()
        self._round()
        self.clear()
        return float(norm)

    def clear(self) -> None:
        """Forget the gradients."""
        for weight, master in zip(self.weights, self.masters, strict=True):
            weight.grad = master.grad = None

    @torch.no_grad()
    def _round(self) -> None:
        for weight, master in zip(self.weights, self.masters, strict=True):
            if weight is not master:
                weight.copy_(master)

    @torch.no_grad()
    def adopt(self) -> None:
        """Take the weights as they are, whoever changed them."""
        for weight, master in zip(self.weights, self.masters, strict=True):
            if weight is not master:
                master.copy_(weight)

    def state(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, by name, each in one piece."""
        return {name: full_tensor(tensor) for name, tensor in self.parts().items()}

    def parts(self) -> dict[str, Tensor]:
        """The same as this process holds it."""
        tensors: dict[str, Tensor] = {}
        for name, weight, master in zip(self.named, self.weights, self.masters, strict=True):
            if weight is not master:
                tensors[f"master/{name}"] = master.detach()
            for key, value in self.torch.state.get(master, {}).items():
                tensors[f"{key}/{name}"] = torch.as_tensor(value)
        return tensors

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `state` gave."""
        for name, weight, master in zip(self.named, self.weights, self.masters, strict=True):
            if weight is not master:
                master.copy_(shard_like(tensors[f"master/{name}"], master))
            kept = {key: tensors[f"{key}/{name}"] for key in _KEPT if f"{key}/{name}" in tensors}
            if kept:
                # Counts of steps stay on the host, as torch has them; moments lie beside the weights.
                self.torch.state[master] = {
                    key: value.clone() if value.ndim == 0 else shard_like(value, master) for key, value in kept.items()
                }


_KEPT = ("step", "exp_avg", "exp_avg_sq")


def _master(weight: Tensor) -> Tensor:
    return weight if weight.dtype == torch.float32 else weight.detach().float().clone().requires_grad_()


def _make(settings: LmOptimizerSpec, masters: Iterable[Tensor]) -> torch.optim.Optimizer:
    if settings.name == "sgd":
        return torch.optim.SGD(masters, lr=settings.lr, weight_decay=settings.weight_decay)
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    first, second = settings.betas
    return kind(
        masters,
        lr=settings.lr,
        betas=(first, second),
        eps=settings.eps,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def _factor(settings: LmOptimizerSpec, update: int, share: float) -> float:
    """The share of the full learning rate: rising while warming up, falling with the budget."""
    rising = min(1.0, (update + 1) / (settings.warmup_updates + 1))
    return rising * (1.0 + (settings.lr_end_fraction - 1.0) * min(share, 1.0))
