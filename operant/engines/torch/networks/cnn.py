"""Networks that read images: the Nature convolutions and IMPALA's residual ones.

Observations arrive as bytes, in whichever order of axes the environment has them; the first layer
makes floats of them. Channels lie last in memory, where convolutions are quickest, and on a CPU a
large batch goes through them in blocks that its caches hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from operant.engines.torch.networks.convolution import PRODUCTS_PAY, Convolution
from operant.engines.torch.networks.layers import ACTIVATIONS, HIDDEN_GAIN, initialize
from operant.envs.images import Image, feature_map, image_of
from operant.spec.settings.nets import ImpalaSpec, NatureCnnSpec, Net

BLOCK = 256 if PRODUCTS_PAY else 64
"""Images that pass the convolutions together on a CPU: more would leave its caches before the gradient returns.
Matrix products keep what they need there by themselves."""


class Pixels(nn.Module):
    """Bytes of a batch of images as floats, channels first; `FirstConvolution` is what scales them."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self.axes = image.axes
        self.size = (image.channels, image.height, image.width)

    def forward(self, obs: Tensor) -> Tensor:
        ordered = obs.permute(self.axes).reshape(len(obs), *self.size)
        return channels_last(ordered).to(torch.float32)


class FirstConvolution(Convolution):
    """A convolution of bytes as if they were in [0, 1]: its few weights are scaled rather than all the pixels."""

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight * (1 / 255), self.bias)


def channels_last(images: Tensor) -> Tensor:
    """The same images with their channels last in memory."""
    if images.device.type != "cpu" or images.is_contiguous(memory_format=torch.channels_last):
        return images.contiguous(memory_format=torch.channels_last)
    laid = torch.empty_like(images, memory_format=torch.channels_last)
    for channel in range(images.shape[1]):
        laid[:, channel] = images[:, channel]  # more than twice as quick as torch's own way on a CPU
    return laid


def laid_out(obs: Tensor) -> Tensor:
    """Images C x H x W with their channels last in memory: once for a rollout, not for each of its minibatches."""
    image = image_of(tuple(obs.shape[1:]))
    in_order = image is not None and image.axes == (0, 1, 2, 3)
    return channels_last(obs) if in_order else obs


def gathered(obs: Tensor, index: Tensor) -> Tensor:
    """The images at `index`, lying in memory as they do in `obs`: whole rows are copied, far quicker than by axes."""
    if not (obs.is_contiguous() or (obs.ndim == 4 and obs.is_contiguous(memory_format=torch.channels_last))):
        return obs[index]
    each = obs[0].numel()
    rows = obs.as_strided((len(obs), each), (each, 1)).index_select(0, index)
    return rows.as_strided((len(index), *obs.shape[1:]), obs.stride())


class Residual(nn.Module):
    """x + two convolutions of x, each after its activation."""

    def __init__(self, spec: ImpalaSpec, channels: int) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[spec.activation]()
        self.first = convolution(spec, channels, channels, kernel=3, padding=1)
        self.second = convolution(spec, channels, channels, kernel=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.activation(self.first(self.activation(x))))


class ImageTrunk(nn.Sequential):
    """Layers of which the first `eyes` see images, on a CPU a block of them at a time; the others take all at once."""

    def __init__(self, eyes: Sequence[nn.Module], rest: Sequence[nn.Module]) -> None:
        super().__init__(*eyes, *rest)
        self._eyes = len(eyes)

    def forward(self, obs: Tensor) -> Tensor:
        layers = list(self)
        blocks = obs.split(BLOCK) if obs.device.type == "cpu" else (obs,)
        parts = [_through(layers[: self._eyes], block) for block in blocks]
        return _through(layers[self._eyes :], parts[0] if len(parts) == 1 else torch.cat(parts))


def _through(layers: Sequence[nn.Module], x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


def image_layers(spec: Net, shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """Layers from images of this shape to flat features, and how many features there are."""
    image = image_of(shape)
    assert image is not None, "validation refuses a network that does not fit the observation"
    size = feature_map(spec, image)
    assert size is not None, "validation refuses images that are too small"
    if isinstance(spec, NatureCnnSpec):
        layers = _nature(spec, image.channels)
    else:
        assert isinstance(spec, ImpalaSpec), "no other network reads images"
        layers = _impala(spec, image.channels)
    return nn.Sequential(Pixels(image), *layers, nn.Flatten()), math.prod(size)


def _nature(spec: NatureCnnSpec, channels: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for outputs, kernel, stride in spec.conv:
        kind = Convolution if layers else FirstConvolution
        layers += [convolution(spec, channels, outputs, kernel, stride, kind=kind), in_place(spec)]
        channels = outputs
    return layers


def in_place(spec: Net) -> nn.Module:
    """The activation of a layer whose own output nothing else reads, so that it may be overwritten where it lies."""
    return nn.ReLU(inplace=True) if spec.activation == "relu" else ACTIVATIONS[spec.activation]()


def _impala(spec: ImpalaSpec, channels: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for stage in spec.channels:
        outputs = stage * spec.width
        kind = Convolution if layers else FirstConvolution
        layers += [
            convolution(spec, channels, outputs, kernel=3, padding=1, kind=kind),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
            Residual(spec, outputs),
            Residual(spec, outputs),
        ]
        channels = outputs
    return [*layers, ACTIVATIONS[spec.activation]()]


def convolution(
    spec: Net,
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    kind: type[Convolution] = Convolution,
) -> Convolution:
    """A convolution initialized as the spec says, with its weights' channels last in memory."""
    layer = kind(inputs, outputs, kernel, stride, padding)
    initialize(spec, layer, HIDDEN_GAIN)
    layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
    return layer
