"""Which observations are images, and what convolutions leave of them: arithmetic alone, without torch."""

from __future__ import annotations

from dataclasses import dataclass

from operant.errors import UsageError
from operant.spec.schema import Spec
from operant.spec.settings.nets import ImpalaSpec, NatureCnnSpec, Net


@dataclass(frozen=True)
class Image:
    """An observation that is a picture: its size, and the axes of a batch of them in the order B, C..., H, W.

    A stack of colour pictures has two axes of channels, which become one.
    """

    channels: int
    height: int
    width: int
    axes: tuple[int, ...]


def image_of(shape: tuple[int, ...]) -> Image | None:
    """How an observation of this shape is a picture; None where it is a vector.

    Of the first and the last axis the shorter one holds the channels, so H x W x C and C x H x W
    are both understood; a fourth axis in front is a stack of such pictures.
    """
    if len(shape) == 2:
        return Image(1, *shape, axes=(0, 1, 2))
    if len(shape) not in (3, 4):
        return None
    front, stack = len(shape) - 3, shape[:-3]
    first, middle, last = shape[front:]
    axes = (0, 1, 2, 3) if first <= last else (0, 3, 1, 2)
    size = (first, middle, last) if first <= last else (last, first, middle)
    moved = tuple(axis + front for axis in axes[1:])
    return Image((stack or (1,))[0] * size[0], size[1], size[2], (0, 1, *moved) if stack else axes)


def feature_map(net: Net, image: Image) -> tuple[int, int, int] | None:
    """Channels, height and width of what the convolutions give; None where the picture is too small for them."""
    if isinstance(net, NatureCnnSpec):
        height, width = image.height, image.width
        for _, kernel, stride in net.conv:
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            if min(height, width) < 1:
                return None
        return net.conv[-1][0], height, width
    assert isinstance(net, ImpalaSpec), "no other network reads images"
    sides = (image.height, image.width)
    for _ in net.channels:
        sides = tuple((side + 1) // 2 for side in sides)
    return net.channels[-1] * net.width, sides[0], sides[1]


def check_network(spec: Spec, shape: tuple[int, ...]) -> None:
    """`UsageError` where the network cannot read observations of this shape."""
    net = spec.agent.net
    if not net.READS_IMAGES:
        return
    image = image_of(shape)
    if image is None:
        raise UsageError(
            f"agent.net.type: {net.type} reads images, but {spec.env.name} gives vectors of {shape[0]} numbers",
            remedy="-s agent.net.type=mlp, or an environment whose observations are uint8 images",
        )
    if isinstance(net, NatureCnnSpec) and feature_map(net, image) is None:
        raise UsageError(
            f"agent.net.conv: the images of {spec.env.name}, {image.height} x {image.width}, are too small"
            f" for these kernels",
            remedy="smaller kernels and strides, such as -s 'agent.net.conv=[[16, 3, 1], [32, 3, 1]]'",
        )
