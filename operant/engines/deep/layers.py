"""What every network is made of: activations, and layers initialised as the spec says."""

from __future__ import annotations

from torch import nn

from operant.spec.nets import Net

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "leaky_relu": nn.LeakyReLU,
}
HIDDEN_GAIN = 2**0.5


def linear(spec: Net, inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A linear layer initialised as the spec says; `gain` scales orthogonal and Xavier weights."""
    layer = nn.Linear(inputs, outputs)
    initialise(spec, layer, gain)
    return layer


def initialise(spec: Net, layer: nn.Linear | nn.Conv2d, gain: float) -> None:
    """Give a layer the weights that the spec asks for."""
    if spec.init == "torch":
        return
    if spec.init == "orthogonal":
        nn.init.orthogonal_(layer.weight, gain)
    elif spec.init == "xavier_uniform":
        nn.init.xavier_uniform_(layer.weight, gain)
    else:
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    assert layer.bias is not None, "every layer here has one"
    nn.init.zeros_(layer.bias)
