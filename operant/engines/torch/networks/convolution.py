"""Convolutions as matrix products, for processors on which torch's own are slow to take gradients of.

On an Arm processor the gradients of torch's convolutions reach a third to a half of the rate of a matrix product.
Gathering the patches that a kernel sees, and scattering their gradients, costs less than that loses. Patches are kept
until the gradient is taken: 0.7 MB for each image that the Nature network sees. Channels lie last in memory, as
everywhere in `vision`.
"""

from __future__ import annotations

import platform
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PRODUCTS_PAY = platform.machine() == "aarch64"
"""Measured on a Neoverse N1, torch 2.10: a gradient step of the Nature network takes 0.77 of its time."""


class Convolution(nn.Conv2d):
    """`nn.Conv2d` with square kernels, no dilation and no groups; by matrix products where they are quicker."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        by_library = input.device.type != "cpu" or not PRODUCTS_PAY or torch.is_autocast_enabled("cpu")
        if by_library or bias is None or torch.compiler.is_compiling():
            return super()._conv_forward(input, weight, bias)
        edge = int(self.padding[0])
        # Padded outside of the products, where autograd knows what to do.
        padded = functional.pad(input, (edge, edge, edge, edge)) if edge else input
        found = Products.apply(padded, weight, bias, self.stride[0])
        assert found is not None, "a custom function gives what its forward gives"
        return found


class Products(torch.autograd.Function):
    """A convolution of images [B, C, H, W] without padding, as one product of their patches (final)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        patches = gather(images, weight.shape[-1], stride)
        ctx.stride, ctx.size = stride, images.shape
        ctx.save_for_backward(patches, weight)
        batch, height, width = patches.shape[:3]
        # No view of the product: the activation that overwrites this in place would have to copy it.
        size = (batch, len(weight), height, width)
        found = torch.empty(size, dtype=images.dtype, memory_format=torch.channels_last)
        as_rows = found.permute(0, 2, 3, 1).view(-1, len(weight))
        torch.addmm(bias, patches.flatten(0, 2).flatten(1), rows_of(weight).t(), out=as_rows)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        patches, weight = ctx.saved_tensors
        grad = grads[0].permute(0, 2, 3, 1).reshape(-1, weight.shape[0])
        of_weight = grad.t() @ patches.flatten(0, 2).flatten(1)
        of_images = None
        if ctx.needs_input_grad[0]:
            of_images = scatter((grad @ rows_of(weight)).view(patches.shape), ctx.size, ctx.stride)
        outputs, channels, kernel, _ = weight.shape
        return of_images, of_weight.view(outputs, kernel, kernel, channels).permute(0, 3, 1, 2), grad.sum(0), None


def rows_of(weight: Tensor) -> Tensor:
    """Kernels [outputs, C, K, K] as rows in the order of the patches; no copy where their channels lie last."""
    return weight.permute(0, 2, 3, 1).flatten(1)


def gather(images: Tensor, kernel: int, stride: int) -> Tensor:
    """What the kernel sees at each place: [B, places down, places across, K, K, C]."""
    down = images.permute(0, 2, 3, 1).unfold(1, kernel, stride).unfold(2, kernel, stride)
    return down.permute(0, 1, 2, 4, 5, 3).contiguous()


def scatter(patches: Tensor, size: torch.Size, stride: int) -> Tensor:
    """The sum of patches where they were gathered from: images of `size` [B, C, H, W], their channels last."""
    _, down, across, kernel, _, channels = patches.shape
    batch, _, height, width = size
    images = patches.new_zeros(batch, height, width, channels)
    for row in range(kernel):
        for column in range(kernel):
            places = images[:, row : row + stride * down : stride, column : column + stride * across : stride]
            places += patches[:, :, :, row, column]
    return images.permute(0, 3, 1, 2)
