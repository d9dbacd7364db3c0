"""Networks on images: the jax engine's features and gradients are those of the torch engine."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax import nets
from operant.engines.jax.convolutions import as_convolution, as_products
from operant.engines.torch.networks.cnn import Residual
from operant.engines.torch.networks.heads import ActorCritic
from operant.spec.settings.nets import ImpalaSpec, NatureCnnSpec, Net

SHAPE = (4, 36, 30)
NETS = {
    "nature": NatureCnnSpec(conv=((8, 8, 4), (16, 3, 2)), hidden=(32,), activation="relu"),
    "impala": ImpalaSpec(channels=(4, 8), hidden=(32,), activation="relu"),
}


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (3, 1), (3, 2), (5, 3), (2, 4)])
def test_matrix_products_are_the_convolution(kernel: int, stride: int):
    rng = np.random.default_rng(0)
    x, weight = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((2, 19, 16, 3), (kernel, kernel, 3, 5)))
    np.testing.assert_allclose(as_products(weight, x, stride), as_convolution(weight, x, stride), atol=2e-5)


def linear(layer: Any) -> dict[str, np.ndarray]:
    return {"weight": layer.weight.detach().numpy().T.copy(), "bias": layer.bias.detach().numpy().copy()}


def convolution(layer: Any) -> dict[str, np.ndarray]:
    weight = layer.weight.detach().numpy().transpose(2, 3, 1, 0)
    return {"weight": weight.copy(), "bias": layer.bias.detach().numpy().copy()}


def trunk_of(net: Net, module: torch.nn.Module) -> list[Any]:
    """A torch trunk's layers as the jax engine keeps them: features there are in the order H, W, C."""
    residual = [each for each in module.modules() if isinstance(each, Residual)]
    inner = {id(part) for each in residual for part in (each.first, each.second)}
    first = [m for m in module.modules() if isinstance(m, torch.nn.Conv2d) and id(m) not in inner]
    layers: list[Any] = [convolution(each) for each in first]
    if residual:
        pairs = [[convolution(each.first), convolution(each.second)] for each in residual]
        layers = [{"first": conv, "residual": pairs[2 * k : 2 * k + 2]} for k, conv in enumerate(layers)]
    (hidden,) = [linear(m) for m in module.modules() if isinstance(m, torch.nn.Linear)]
    channels = first[-1].out_channels
    weight = hidden["weight"].reshape(channels, -1, hidden["weight"].shape[1]).transpose(1, 0, 2)
    return [*layers, {**hidden, "weight": weight.reshape(hidden["weight"].shape)}]


@pytest.mark.parametrize("name", NETS)
def test_outputs_and_gradients_agree(name: str):
    net = NETS[name]
    torch.manual_seed(0)
    deep = ActorCritic(net, SHAPE, 3, True, net)
    obs = np.random.default_rng(1).integers(0, 256, (6, *SHAPE)).astype(np.uint8)
    params = {
        "trunk": trunk_of(net, deep.trunk),
        "actor": [linear(m) for m in deep.actor.modules() if isinstance(m, torch.nn.Linear)],
        "critic": [linear(m) for m in deep.critic.modules() if isinstance(m, torch.nn.Linear)],
    }

    def loss(params: Any) -> Any:
        output, value = nets.forward(net, params, jnp.asarray(obs).astype(jnp.float32))
        return (output * jnp.arange(3)).sum() + jnp.square(value).sum(), (output, value)

    grads, (output, value) = jax.grad(loss, has_aux=True)(params)
    deep_output, deep_value = deep(torch.from_numpy(obs))
    ((deep_output * torch.arange(3)).sum() + deep_value.square().sum()).backward()
    np.testing.assert_allclose(output, deep_output.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(value, deep_value.detach().numpy(), atol=1e-5)
    for module in deep.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
            module.weight.data, module.bias.data = module.weight.grad, module.bias.grad  # pyright: ignore
    expected = trunk_of(net, deep.trunk)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), grads["trunk"], expected)
