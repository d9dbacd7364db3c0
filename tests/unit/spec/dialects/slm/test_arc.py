from __future__ import annotations

from typing import Any

import pytest

from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed, refusal

WIRING = {"input": "x", "modules": {"body": ["x"]}, "output": "body"}


def changes(layers: Any, wiring: Any = WIRING) -> dict[str, Any]:
    arc = {"modules": {"body": {"Sequential": layers}}, "graph": wiring}
    absent = dict.fromkeys(("agent.net.hid_layers", "agent.net.hid_layers_activation"), ABSENT)
    return {"agent.net.type": "TorchArcNet", "agent.net.arc": arc, **absent}


def test_a_plain_chain_is_a_perceptron(ppo: Changed) -> None:
    layers = [{"LazyLinear": {"out_features": 32}}, {"SELU": None}, {"LazyLinear": {"out_features": 16}}, "SELU"]
    net = ppo(changes(layers)).spec.agent.net
    assert (net.hidden, net.activation, net.layer_norm) == ((32, 16), "selu", False)


def test_a_norm_after_every_linear_layer_comes_along(ppo: Changed) -> None:
    layer = [{"LazyLinear": {"out_features": 32}}, {"LayerNorm": {"normalized_shape": 32}}, {"ReLU": None}]
    net = ppo(changes(layer * 2)).spec.agent.net
    assert (net.hidden, net.activation, net.layer_norm) == ((32, 32), "relu", True)


@pytest.mark.parametrize(
    "layers",
    [
        [{"LazyLinear": {"out_features": 32}}, {"ReLU": None}, {"LazyConv2d": {"out_channels": 32}}, {"ReLU": None}],
        [{"Flatten": None}, {"LazyLinear": {"out_features": 32}}, {"ReLU": None}],
        [{"LazyLinear": {"out_features": 32}}, {"LayerNorm": None}],
        [{"LazyLinear": {"out_features": 8}}, {"LayerNorm": {"normalized_shape": 8, "eps": 0.1}}, {"ReLU": None}],
        [{"LazyLinear": {"out_features": 8}}, "LayerNorm", {"ReLU": None}, {"LazyLinear": {"out_features": 8}}, "ReLU"],
        [{"LazyLinear": {"out_features": 32, "bias": False}}, {"ReLU": None}],
        [{"LazyLinear": {"out_features": 32}}, {"LeakyReLU": {"negative_slope": 0.3}}],
        [{"LazyLinear": {"out_features": 32}}, {"ReLU": None}, {"LazyLinear": {"out_features": 32}}, {"Tanh": None}],
        [{"LazyLinear": {"out_features": 32}}],
        "Linear",
    ],
)
def test_anything_more_is_refused(ppo: Changed, layers: Any) -> None:
    assert "without counterpart" in refusal(ppo, changes(layers), lossy=True)


def test_other_wiring_and_files_are_refused(ppo: Changed) -> None:
    layers = [{"LazyLinear": {"out_features": 32}}, {"ReLU": None}]
    assert "graph without counterpart" in refusal(ppo, changes(layers, {**WIRING, "output": ["a", "b"]}))
    assert "arc_file" in refusal(ppo, {"agent.net.type": "TorchArcNet", "agent.net.arc_file": "arc.yaml"})
