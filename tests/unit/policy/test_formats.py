"""Every layer that a network may have, in every format, against the torch engine's own networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.torch.networks.heads import QNet, QuantileNet
from operant.engines.torch.networks.layers import ACTIVATIONS
from operant.engines.torch.trained_policy import net_layers
from operant.policy import files
from operant.policy.network import Network, discrete_head
from operant.spec.settings.nets import ImpalaSpec, MlpSpec, NatureCnnSpec

NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    **{name: (MlpSpec(activation=name, hidden=(16,)), (5,)) for name in ACTIVATIONS},  # pyright: ignore[reportArgumentType]
    "normed": (MlpSpec(layer_norm=True, hidden=(16, 8)), (5,)),
    "flattened images": (MlpSpec(hidden=(16,)), (6, 7)),
    "channels first": (NatureCnnSpec(conv=((4, 3, 2), (4, 2, 1)), hidden=(16,)), (3, 12, 14)),
    "channels last": (NatureCnnSpec(conv=((4, 3, 2), (4, 2, 1)), hidden=(16,)), (12, 14, 3)),
    "a stack": (NatureCnnSpec(conv=((4, 3, 2),), hidden=(16,)), (2, 12, 14, 3)),
    "residual": (ImpalaSpec(channels=(4, 6), hidden=(16,)), (3, 11, 14)),
}


@pytest.fixture(params=list(files.SUFFIXES))
def to(request: pytest.FixtureRequest) -> str:
    if request.param == "onnx":
        pytest.importorskip("onnxruntime")
    return request.param


@pytest.mark.parametrize("name", NETS)
def test_a_network_is_the_same_in_every_format(name: str, to: str, tmp_path: Path):
    spec, shape = NETS[name]
    torch.manual_seed(0)
    net = QNet(spec, shape, 4)
    kind = "uint8" if len(shape) > 1 else "float32"
    rng = np.random.default_rng(0)
    obs = rng.integers(0, 256, (7, *shape), np.uint8) if kind == "uint8" else rng.normal(size=(7, *shape))
    network = Network(shape, kind, net_layers(net), discrete_head(start=2), (), "int64")
    check(network, net, obs.astype(kind), to, tmp_path)


def test_quantiles_are_averaged(to: str, tmp_path: Path):
    torch.manual_seed(0)
    net = QuantileNet(MlpSpec(hidden=(16,)), 5, actions=3, quantiles=7)
    network = Network((5,), "float32", net_layers(net), discrete_head(start=2), (), "int64")
    check(network, net, np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32), to, tmp_path)


def test_masks_are_an_input_where_the_environment_has_them(to: str, tmp_path: Path):
    torch.manual_seed(0)
    net = QNet(MlpSpec(hidden=(16,)), 5, 4)
    network = Network((5,), "float32", net_layers(net), discrete_head(), (), "int64", masked=True)
    obs = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    file = files.write(network, to, tmp_path / f"policy{files.SUFFIXES[to]}")[0]
    run = files.load(network, to, file)
    mask = np.zeros((9, 4), bool)
    mask[:, 1] = True
    assert (run(obs, mask)[0] == 1).all()
    assert set(run(obs, ~mask)[0]) <= {0, 2, 3}


def check(network: Network, net: torch.nn.Module, obs: np.ndarray, to: str, folder: Path) -> None:
    file = files.write(network, to, folder / f"policy{files.SUFFIXES[to]}")[0]
    action, output, *_ = files.load(network, to, file)(obs)
    with torch.no_grad():
        expected = net(torch.from_numpy(obs)).numpy()
    assert np.abs(output - expected).max() < 1e-5 * max(1.0, np.abs(expected).max())
    assert np.array_equal(action, expected.argmax(-1) + 2)
