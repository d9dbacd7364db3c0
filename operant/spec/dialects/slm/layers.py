"""The kinds of net that SLM-Lab has: perceptrons, convolutions and recurrent layers."""

from __future__ import annotations

from typing import Any, get_args

from operant.spec.dialects.conversion import Section
from operant.spec.reading.document import KeyPath
from operant.spec.settings.nets import Activation

ACTIVATIONS = {name: name for name in get_args(Activation)}
NO_ACTIVATION = f"has no counterpart; there are {', '.join(ACTIVATIONS)}"


def native_type(net: Section, name: str) -> None:
    """Choose the native kind of net."""
    net.conversion.set("agent.net.type", name, net.at("type"))


def activation(net: Section) -> None:
    """One for all hidden layers."""
    found = net.only("hid_layers_activation", ACTIVATIONS, NO_ACTIVATION)
    if found is not None:
        net.conversion.set("agent.net.activation", found, net.at("hid_layers_activation"))


def numbers(net: Section) -> None:
    """Observations are numbers already, so there are no pixels to scale."""
    if net.get("normalize"):
        net.conversion.lose(net.at("normalize"), "has no counterpart for a net that sees no images")


def mlp(net: Section) -> None:
    """`MLPNet`: widths and one activation."""
    native_type(net, "mlp")
    net.need("hid_layers")
    net.copy("hid_layers", "agent.net.hidden")
    activation(net)
    numbers(net)


CNN = "nature_cnn"
PLAIN = "only [channels, kernel, stride], unpadded and undilated, has a counterpart"


def convolutional(net: Section) -> None:
    """`ConvNet`: `[channels, kernel, stride, padding, dilation]` of each convolution, then widths."""
    native_type(net, CNN)
    net.need("conv_hid_layers")
    convolutions(net, net.at("conv_hid_layers"), net.get("conv_hid_layers", []))
    widths = net.get("fc_hid_layers", [])
    net.conversion.set("agent.net.hidden", widths, net.at("fc_hid_layers"))
    activation(net)
    bytes_to_numbers(net)


def convolutions(net: Section, path: KeyPath, layers: Any) -> None:
    """Take over convolutions, wherever they are written."""
    native = [_convolution(each) for each in layers] if isinstance(layers, list) else [None]
    if not native or None in native:
        net.conversion.refuse(path, "is no stack of convolutions that has a counterpart", PLAIN)
    else:
        net.conversion.set("agent.net.conv", native, path)


def bytes_to_numbers(net: Section) -> None:
    """Pixels are scaled to numbers between 0 and 1 in any case."""
    if not net.get("normalize"):
        net.conversion.remark(net.at("normalize"), "pixels are divided by 255 here, which `normalize: true` asks for")


def _convolution(layer: Any) -> list[Any] | None:
    """The first three of a convolution, when the others say nothing; kernels are square."""
    if not isinstance(layer, list) or not 3 <= len(layer) <= 5 or list(layer[3:]) not in ([], [0], [0, 1]):
        return None
    sizes = [each[0] if isinstance(each, list) and len(set(map(str, each))) == 1 else each for each in layer[:3]]
    return sizes if all(isinstance(each, int) and not isinstance(each, bool) for each in sizes) else None


CELLS = {"GRU": "gru", "LSTM": "lstm"}
REMEMBERS = "left out: the net remembers its whole episode; SLM-Lab's sees the newest observation seq_len times"


def recurrent(net: Section) -> None:
    """Hidden layers, recurrent ones upon them, and heads."""
    cell = net.only("cell_type", CELLS, f"has no counterpart; there are {', '.join(CELLS)}", default="GRU")
    if cell is None:
        net.skip()
        return
    native_type(net, cell)
    net.conversion.set("agent.net.hidden", net.get("fc_hid_layers", []), net.at("fc_hid_layers"))
    net.need("rnn_hidden_size")
    net.copy("rnn_hidden_size", "agent.net.recurrent")
    net.copy("rnn_num_layers", "agent.net.layers", default=1)
    activation(net)
    numbers(net)
    if net.get("bidirectional"):
        net.conversion.lose(net.at("bidirectional"), "has no counterpart: the future of an episode is not known")
    net.drop({"seq_len": REMEMBERS})
