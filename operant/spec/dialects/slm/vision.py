"""`ConvNet` and convolutions of a graph: images in, hidden layers behind."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.perceptron import activation, native_type
from operant.spec.document import KeyPath

CNN = "nature_cnn"
PLAIN = "only [channels, kernel, stride], unpadded and undilated, has a counterpart"


def convolutional(net: Section) -> None:
    """`ConvNet`: `[channels, kernel, stride, padding, dilation]` of each convolution, then widths."""
    if not native_type(net, CNN):
        net.skip()
        return
    net.need("conv_hid_layers")
    convolutions(net, net.at("conv_hid_layers"), net.get("conv_hid_layers", []))
    widths = net.get("fc_hid_layers", [])
    net.ledger.set("agent.net.hidden", widths, net.at("fc_hid_layers"))
    activation(net)
    bytes_to_numbers(net)


def convolutions(net: Section, path: KeyPath, layers: Any) -> None:
    """Take over convolutions, wherever they are written."""
    native = [_convolution(each) for each in layers] if isinstance(layers, list) else [None]
    if not native or None in native:
        net.ledger.refuse(path, "is no stack of convolutions that has a counterpart", PLAIN)
    else:
        net.ledger.set("agent.net.conv", native, path)


def bytes_to_numbers(net: Section) -> None:
    """Pixels are scaled to numbers between 0 and 1 in any case."""
    if not net.get("normalize"):
        net.ledger.remark(net.at("normalize"), "pixels are divided by 255 here, which `normalize: true` asks for")


def _convolution(layer: Any) -> list[Any] | None:
    """The first three of a convolution, when the others say nothing; kernels are square."""
    if not isinstance(layer, list) or not 3 <= len(layer) <= 5 or list(layer[3:]) not in ([], [0], [0, 1]):
        return None
    sizes = [each[0] if isinstance(each, list) and len(set(map(str, each))) == 1 else each for each in layer[:3]]
    return sizes if all(isinstance(each, int) and not isinstance(each, bool) for each in sizes) else None
