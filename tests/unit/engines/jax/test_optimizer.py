"""Each optimizer against torch's of the same name, on the same gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax.optimizer import Optimizer, optimizer_hyper
from operant.engines.torch.optimizer import FlatOptimizer
from operant.spec.settings.optimizers import OptimizerSpec

CASES: dict[str, dict[str, Any]] = {
    "adam": {},
    "adamw": {"weight_decay": 0.05},
    "adam-decayed": {"weight_decay": 0.05, "betas": (0.8, 0.9)},
    "rmsprop": {"momentum": 0.5, "alpha": 0.9},
    "sgd": {"momentum": 0.9, "nesterov": True},
    "adam-each": {"clip_each": True, "critic_lr": 0.02},
    "adam-free": {"clip_grad_norm": None},
}


@pytest.mark.parametrize("name", CASES)
def test_steps_agree_with_torch(name: str):
    spec = OptimizerSpec(name=name.partition("-")[0], lr=0.01, **CASES[name])  # pyright: ignore[reportArgumentType]
    rng = np.random.default_rng(0)
    start = {"actor": rng.normal(size=(3, 2)), "critic": rng.normal(size=4)}
    grads = [{key: 3 * rng.normal(size=value.shape) for key, value in start.items()} for _ in range(5)]
    theirs = {key: torch.nn.Parameter(torch.tensor(value, dtype=torch.float32)) for key, value in start.items()}
    peer = FlatOptimizer(spec, [[theirs["actor"]], [theirs["critic"]]], [spec.lr, spec.critic_lr or spec.lr])
    mine: Any = {key: jnp.asarray(value, jnp.float32) for key, value in start.items()}
    optimizer, rates = Optimizer(spec), optimizer_hyper(spec)
    state = optimizer.init(mine)
    for grad in grads:
        loss = sum((theirs[key] * torch.tensor(value, dtype=torch.float32)).sum() for key, value in grad.items())
        assert isinstance(loss, torch.Tensor)
        expected = peer.step(loss)
        grad = {key: jnp.asarray(value, jnp.float32) for key, value in grad.items()}
        mine, state, norm = jax.jit(optimizer.step)(mine, grad, state, rates, 1.0)
        assert float(norm) == pytest.approx(float(expected), rel=1e-5)
    for key, value in theirs.items():
        np.testing.assert_allclose(mine[key], value.detach().numpy(), atol=2e-6)
