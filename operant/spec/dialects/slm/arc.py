"""TorchArcNet graphs that describe a plain chain: linear layers, perhaps behind convolutions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

from operant.spec.dialects.conversion import Section
from operant.spec.reading.document import KeyPath
from operant.spec.settings.nets import Activation

ACTIVATIONS = {**{name.replace("_", ""): name for name in get_args(Activation)}, "leaky_relu": "leaky_relu"}
LINEAR = ("LazyLinear", "Linear")
CONVOLUTION = ("LazyConv2d", "Conv2d")
RENORM = ("LazyBatchRenorm1d", "BatchRenorm1d")
PLAIN = (
    "only a chain of convolutions and linear layers, each followed by one and the same activation (all linear ones"
    " perhaps by a LayerNorm before it), has a counterpart"
)


@dataclass
class Chain:
    """What a chain of layers says: convolutions, widths, one activation, and what normalises between them."""

    convolutions: list[Any] = field(default_factory=list)
    widths: list[Any] = field(default_factory=list)
    activations: list[str] = field(default_factory=list)
    renorms: list[dict[str, Any]] = field(default_factory=list)
    norms: int = 0
    flat: bool = False

    def takes(self, layer: Any) -> bool:
        """Add a layer, if it has a place here."""
        kind, options = next(iter(layer.items())) if isinstance(layer, dict) and len(layer) == 1 else (layer, None)
        options = options if isinstance(options, dict) else {}
        wants_activation = len(self.convolutions) + len(self.widths) > len(self.activations)
        if not wants_activation and kind in LINEAR and set(options) <= {"in_features", "out_features"}:
            self.widths.append(options.get("out_features"))
        elif not wants_activation and kind in CONVOLUTION and not self.widths:
            self.convolutions.append(_convolution(options))
        elif not wants_activation and kind == "Flatten" and self.convolutions and not self.flat:
            self.flat = True
        elif wants_activation and kind in RENORM and len(self.renorms) == len(self.widths) - 1:
            self.renorms.append(options)
        elif wants_activation and kind == "LayerNorm" and self.norms == len(self.widths) - 1:
            self.norms += 1
            return set(options) <= {"normalized_shape"}
        elif wants_activation and str(kind).lower() in ACTIVATIONS and not options:
            self.activations.append(ACTIVATIONS[str(kind).lower()])
        else:
            return False
        return True

    @property
    def is_whole(self) -> bool:
        """Whether every layer has the one activation, and all or none are normalised."""
        layers, widths = len(self.convolutions) + len(self.widths), len(self.widths)
        renormed_alike = self.renorms in ([], self.renorms[:1] * widths)
        normed_alike = renormed_alike and self.norms in (0, widths) and not (self.norms and self.renorms)
        return len(self.activations) == layers and len(set(self.activations)) < 2 and normed_alike


def _convolution(options: dict[str, Any]) -> list[Any]:
    known = {"in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation"}
    sizes = [options.get("out_channels"), options.get("kernel_size"), options.get("stride", 1)]
    rest = [options.get("padding", 0), options.get("dilation", 1)]
    return [*sizes, *rest] if set(options) <= known else []


def chain(net: Section, key: str = "arc") -> tuple[KeyPath, Chain] | None:
    """The layers of the graph under a key, and where they stand; None, and a refusal, where they are no plain chain."""
    if net.get("arc_file") is not None:
        net.refuse("arc_file", "is not followed", "write the graph into the spec as `arc`")
        return None
    if not isinstance(net.need(key), dict):
        return None
    found = _sequence(net.below(key))
    if found is None:
        return None
    path, layers = found
    whole = Chain()
    for index, layer in enumerate(layers):
        if not whole.takes(layer):
            net.conversion.refuse((*path, index), "is a layer without counterpart", PLAIN)
            return None
    if not whole.is_whole:
        net.conversion.refuse(path, "is a chain without counterpart", PLAIN)
        return None
    return path, whole


def _sequence(graph: Section) -> tuple[KeyPath, list[Any]] | None:
    """The layers of a graph of a single Sequential, and where they stand."""
    modules, wiring = graph.get("modules", {}), graph.get("graph", {})
    body = next(iter(modules)) if isinstance(modules, dict) and len(modules) == 1 else None
    module = modules[body] if body is not None else None
    layers = module.get("Sequential") if isinstance(module, dict) and len(module) == 1 else None
    wired = isinstance(wiring, dict) and wiring.get("output") == body and isinstance(wiring.get("input"), str)
    if not isinstance(layers, list) or not wired:
        graph.conversion.refuse(graph.path, "is a graph without counterpart", PLAIN)
        return None
    return (*graph.at("modules"), str(body), "Sequential"), layers
