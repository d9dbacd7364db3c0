"""What every network is made of: activations, and layers initialized as the spec says."""

from __future__ import annotations

from torch import Tensor, nn

from operant.spec.settings.nets import SCALED_INITS, Net

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "leaky_relu": nn.LeakyReLU,
    "sigmoid": nn.Sigmoid,
}
HIDDEN_GAIN = 2**0.5


def linear(spec: Net, inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A linear layer initialized as the spec says; `gain` scales orthogonal and Xavier weights."""
    layer = nn.Linear(inputs, outputs)
    initialize(spec, layer, gain)
    return layer


def initialize(spec: Net, layer: nn.Linear | nn.Conv2d, gain: float) -> None:
    """Give a layer the weights that the spec asks for."""
    if spec.init == "torch":
        return
    start = getattr(nn.init, f"{spec.init}_")
    if spec.init in SCALED_INITS:
        start(layer.weight, gain)
    else:
        start(layer.weight, nonlinearity="relu")
    assert layer.bias is not None, "every layer here has one"
    nn.init.zeros_(layer.bias)


class Flat(nn.Module):
    """Observations of several axes as one vector of floats."""

    def forward(self, obs: Tensor) -> Tensor:
        return obs.flatten(1).float()
