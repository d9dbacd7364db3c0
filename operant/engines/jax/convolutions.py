"""Layers that read images: the Nature convolutions (Mnih et al., 2015), and IMPALA's (Espeholt et al., 2018).

Observations are bytes from 0 to 255, in whichever order of axes the environment has them; the weights of the first
convolution are scaled rather than all the pixels. Channels lie last.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax.nets import ACTIVATIONS, HIDDEN_GAIN, Layer, Params, apply_linear, init_hidden, init_linear
from operant.envs.images import feature_map, image_of
from operant.spec.settings.nets import ImpalaSpec, NatureCnnSpec, Net


class ImageLayers:
    """Convolutions, and the hidden layers after them."""

    def init(self, net: Net, rng: np.random.Generator, inputs: tuple[int, ...], /) -> tuple[list[Params], int]:
        image = image_of(inputs)
        assert image is not None, "a network that does not fit the observation is refused"
        size = feature_map(net, image)
        assert size is not None, "images that are too small are refused"
        channels, width = image.channels, math.prod(size)
        first: list[Params] = []
        if isinstance(net, NatureCnnSpec):
            for outputs, kernel, _ in net.conv:
                first.append(init_convolution(net, rng, channels, outputs, kernel))
                channels = outputs
        else:
            assert isinstance(net, ImpalaSpec), "no other network reads images"
            for stage in net.channels:
                first.append(init_stage(net, rng, channels, stage * net.width))
                channels = stage * net.width
        return [*first, *init_hidden(net, rng, width, net.hidden)], (width, *net.hidden)[-1]

    def apply(self, net: Net, layers: list[Params], x: Array, dtype: Any, /) -> Array:
        image, activate = image_of(x.shape[1:]), ACTIVATIONS[net.activation]
        assert image is not None, "a network that does not fit the observation is refused"
        x = x.transpose(image.axes).reshape(len(x), image.channels, image.height, image.width)
        x = x.transpose(0, 2, 3, 1).astype(dtype)
        if isinstance(net, NatureCnnSpec):
            convolutions, hidden = layers[: len(net.conv)], layers[len(net.conv) :]
            for k, (layer, (_, _, stride)) in enumerate(zip(convolutions, net.conv, strict=True)):
                x = activate(convolve(layer, x, dtype, stride, scale=1 / 255 if k == 0 else None))
        else:
            assert isinstance(net, ImpalaSpec), "no other network reads images"
            stages, hidden = layers[: len(net.channels)], layers[len(net.channels) :]
            for k, stage in enumerate(stages):
                x = apply_stage(net, stage, x, dtype, scale=1 / 255 if k == 0 else None)
            x = activate(x)
        x = x.reshape(len(x), -1)
        for layer in hidden:
            x = activate(apply_linear(layer, x, dtype))
        return x


CNN = ImageLayers()


def init_convolution(net: Net, rng: np.random.Generator, inputs: int, outputs: int, kernel: int) -> Layer:
    """A convolution's weights [kernel, kernel, inputs, outputs] and bias."""
    layer = init_linear(net, rng, kernel * kernel * inputs, outputs, HIDDEN_GAIN)
    return {"weight": layer["weight"].reshape(kernel, kernel, inputs, outputs), "bias": layer["bias"]}


def init_stage(net: ImpalaSpec, rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, Params]:
    """A stage of IMPALA: a convolution and two residual blocks of two each."""
    first = init_convolution(net, rng, inputs, outputs, 3)
    return {
        "first": first,
        "residual": [[init_convolution(net, rng, outputs, outputs, 3) for _ in range(2)] for _ in range(2)],
    }


def convolve(
    layer: Layer, x: Array, dtype: Any, stride: int = 1, padding: int = 0, scale: float | None = None
) -> Array:
    """A convolution of images [B, H, W, C], as if those were multiplied by `scale`."""
    weight = (layer["weight"] if scale is None else layer["weight"] * scale).astype(dtype)
    if padding:
        x = jnp.pad(x, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
    # XLA's gradient of a convolution takes twenty times as long on a CPU where it is in a loop, as it is here.
    in_blocks = jax.default_backend() == "cpu"
    return (block_convolution if in_blocks else as_convolution)(weight, x, stride) + layer["bias"].astype(dtype)


def as_convolution(weight: Array, x: Array, stride: int) -> Array:
    """A convolution by the operation of that name."""
    return lax.conv_general_dilated(x, weight, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def block_convolution(weight: Array, x: Array, stride: int) -> Array:
    """The same with blocks of `stride` x `stride` pixels as channels, between which the kernel moves by 1.

    A kernel that is no multiple of the stride has zeros at its end.
    """
    kernel, _, inputs, outputs = weight.shape
    blocks = -(-kernel // stride)
    rows, columns = ((side - kernel) // stride + 1 for side in x.shape[1:3])
    height, width = ((count - 1 + blocks) * stride for count in (rows, columns))
    edges = [(0, 0, 0), (0, height - x.shape[1], 0), (0, width - x.shape[2], 0), (0, 0, 0)]
    x = lax.pad(x, jnp.zeros((), x.dtype), edges)
    x = x.reshape(len(x), height // stride, stride, width // stride, stride, inputs)
    x = x.transpose(0, 1, 3, 2, 4, 5).reshape(len(x), height // stride, width // stride, -1)
    rest = blocks * stride - kernel
    weight = jnp.pad(weight, [(0, rest), (0, rest), (0, 0), (0, 0)])
    weight = weight.reshape(blocks, stride, blocks, stride, inputs, outputs).transpose(0, 2, 1, 3, 4, 5)
    return dense_convolution(weight.reshape(blocks, blocks, -1, outputs), x)


@jax.custom_vjp
def dense_convolution(weight: Array, x: Array) -> Array:
    """A convolution whose kernel moves by 1, and whose gradient is quick on a CPU in a loop too."""
    return as_convolution(weight, x, 1)


def _dense_forward(weight: Array, x: Array) -> tuple[Array, tuple[Array, Array]]:
    return as_convolution(weight, x, 1), (weight, x)


def _dense_backward(given: tuple[Array, Array], grad: Array) -> tuple[Array, Array]:
    """The gradient of the images is a convolution again; that of the weights one product for each of their corners."""
    weight, x = given
    kernel, (rows, columns) = len(weight), grad.shape[1:3]
    edges = [(0, 0), (kernel - 1, kernel - 1), (kernel - 1, kernel - 1), (0, 0)]
    of_images = as_convolution(weight[::-1, ::-1].swapaxes(2, 3), jnp.pad(grad, edges), 1)
    flat = grad.reshape(-1, grad.shape[-1])
    corners = [x[:, i : i + rows, j : j + columns] for i in range(kernel) for j in range(kernel)]
    products = [corner.reshape(-1, corner.shape[-1]).T @ flat for corner in corners]
    return jnp.stack(products).reshape(weight.shape), of_images


dense_convolution.defvjp(_dense_forward, _dense_backward)


def apply_stage(net: ImpalaSpec, stage: dict[str, Params], x: Array, dtype: Any, scale: float | None) -> Array:
    """Convolution, pooling, and x + two convolutions of x, twice."""
    activate = ACTIVATIONS[net.activation]
    x = convolve(stage["first"], x, dtype, padding=1, scale=scale)
    edges = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), edges)
    for first, second in stage["residual"]:
        x = x + convolve(second, activate(convolve(first, activate(x), dtype, padding=1)), dtype, padding=1)
    return x
