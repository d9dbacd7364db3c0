"""Convolutions by matrix products are those of torch, and so are their gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from operant.engines.torch.networks import convolution
from operant.engines.torch.networks.convolution import Convolution, Products

# channels, outputs, kernel, stride, padding, side: the Nature network's, IMPALA's, and one that leaves an edge unseen
SHAPES = [(4, 32, 8, 4, 0, 84), (32, 64, 4, 2, 0, 20), (6, 5, 3, 1, 0, 9), (3, 8, 3, 1, 1, 10), (2, 3, 3, 2, 1, 8)]


@pytest.fixture(autouse=True)
def by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "PRODUCTS_PAY", True)


def outcome(layer: nn.Conv2d, images: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """What a layer gives, and the gradients of a sum of it in which every place has a weight of its own."""
    images = images.clone().requires_grad_()
    found = layer(images)
    (torch.sin(torch.arange(found.numel(), dtype=found.dtype).view_as(found)) * found).sum().backward()
    assert layer.weight.grad is not None
    assert layer.bias is not None
    assert layer.bias.grad is not None
    return found.detach(), images.grad, layer.weight.grad, layer.bias.grad


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
def test_values_and_gradients_are_those_of_torch(shape: tuple[int, ...], layout: torch.memory_format) -> None:
    channels, outputs, kernel, stride, padding, side = shape
    torch.manual_seed(1)
    library = nn.Conv2d(channels, outputs, kernel, stride, padding).double()
    ours = Convolution(channels, outputs, kernel, stride, padding).double()
    ours.load_state_dict(library.state_dict())
    images = torch.randn(3, channels, side, side, dtype=torch.float64).contiguous(memory_format=layout)
    for found, expected in zip(outcome(ours, images), outcome(library, images), strict=True):
        assert found is not None
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def test_the_result_may_be_overwritten_where_it_lies() -> None:
    layer = Convolution(4, 8, 3)
    found = layer(torch.randn(2, 4, 6, 6))
    assert found.grad_fn is not None
    assert type(found.grad_fn).__name__ == f"{Products.__name__}Backward"
    assert found.is_contiguous(memory_format=torch.channels_last)
    nn.functional.relu(found, inplace=True).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("needed", [False, True])
def test_a_gradient_is_taken_only_of_images_that_need_one(monkeypatch: pytest.MonkeyPatch, needed: bool) -> None:
    scattered: list[torch.Size] = []
    scatter = convolution.scatter
    monkeypatch.setattr(convolution, "scatter", lambda *given: (scattered.append(given[1]), scatter(*given))[1])
    layer, images = Convolution(4, 8, 3), torch.randn(2, 4, 6, 6, requires_grad=needed)
    layer(images).sum().backward()
    assert scattered == ([images.shape] if needed else [])
    assert (images.grad is not None) == needed


def test_mixed_precision_is_left_to_the_library() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        found = Convolution(4, 8, 3)(torch.randn(2, 4, 6, 6))
    assert found.dtype == torch.bfloat16
