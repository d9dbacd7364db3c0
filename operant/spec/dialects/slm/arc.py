"""TorchArcNet graphs that describe a plain multilayer perceptron."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.slm.ledger import Section
from operant.spec.document import KeyPath

ACTIVATIONS = {
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
    "ELU": "elu",
    "SELU": "selu",
    "LeakyReLU": "leaky_relu",
}
LINEAR = ("LazyLinear", "Linear")
PLAIN = "only a chain of linear layers, each followed by one and the same activation, has a counterpart"


def arc(net: Section) -> None:
    """Read the graph as hidden widths and an activation, or say which part of it is more than that."""
    net.get("hid_layers_activation")
    if net.get("arc_file") is not None:
        net.ledger.refuse(net.at("arc_file"), "is not followed", "write the graph into the spec as `arc`")
        return
    if not isinstance(net.need("arc"), dict):
        return
    graph = net.below("arc")
    layers = _chain(graph)
    if layers is not None:
        _layers(net, *layers)


def _chain(graph: Section) -> tuple[KeyPath, list[Any]] | None:
    """The layers of a graph of a single Sequential, and where they stand."""
    modules, wiring = graph.get("modules", {}), graph.get("graph", {})
    body = next(iter(modules)) if isinstance(modules, dict) and len(modules) == 1 else None
    module = modules[body] if body is not None else None
    layers = module.get("Sequential") if isinstance(module, dict) and len(module) == 1 else None
    wired = isinstance(wiring, dict) and wiring.get("output") == body and isinstance(wiring.get("input"), str)
    if not isinstance(layers, list) or not wired:
        graph.ledger.refuse(graph.path, "is a graph without counterpart", PLAIN)
        return None
    return (*graph.at("modules"), str(body), "Sequential"), layers


def _layers(net: Section, path: KeyPath, layers: list[Any]) -> None:
    widths: list[Any] = []
    activations: list[str] = []
    for index, layer in enumerate(layers):
        kind, options = next(iter(layer.items())) if isinstance(layer, dict) and len(layer) == 1 else (layer, None)
        linear = len(widths) == len(activations)
        if linear and kind in LINEAR and isinstance(options, dict) and set(options) <= {"in_features", "out_features"}:
            widths.append(options.get("out_features"))
        elif not linear and str(kind) in ACTIVATIONS and not options:
            activations.append(ACTIVATIONS[str(kind)])
        else:
            net.ledger.refuse((*path, index), "is a layer without counterpart", PLAIN)
            return
    if len(widths) != len(activations) or len(set(activations)) > 1:
        net.ledger.refuse(path, "is a chain without counterpart", PLAIN)
        return
    net.ledger.set("agent.net.hidden", widths, path)
    if activations:
        net.ledger.set("agent.net.activation", activations[0], path)
    if net.get("hid_layers_activation") not in (None, *activations):
        net.ledger.remark(net.at("hid_layers_activation"), "left out: the graph names its activations itself")
