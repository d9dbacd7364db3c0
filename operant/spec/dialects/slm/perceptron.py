"""What every kind of SLM-Lab net says alike: one activation, and which native net it becomes."""

from __future__ import annotations

from typing import get_args

from operant.spec import nets
from operant.spec.dialects.ledger import Section

ACTIVATIONS = {name: name for name in get_args(nets.Activation)}
NO_ACTIVATION = f"has no counterpart; there are {', '.join(ACTIVATIONS)}"


def native_type(net: Section, name: str) -> bool:
    """Choose the native kind of net; False, and a refusal, where there is none of this name."""
    if name not in nets.NETS:
        net.ledger.refuse(net.at("type"), f"has no counterpart in this version; there are {', '.join(nets.NETS)}")
        return False
    net.ledger.set("agent.net.type", name, net.at("type"))
    return True


def activation(net: Section) -> None:
    """One for all hidden layers."""
    found = net.only("hid_layers_activation", ACTIVATIONS, NO_ACTIVATION)
    if found is not None:
        net.ledger.set("agent.net.activation", found, net.at("hid_layers_activation"))


def numbers(net: Section) -> None:
    """Observations are numbers already, so there are no pixels to scale."""
    if net.get("normalize"):
        net.ledger.lose(net.at("normalize"), "has no counterpart for a net that sees no images")


def mlp(net: Section) -> None:
    """`MLPNet`: widths and one activation."""
    native_type(net, "mlp")
    net.need("hid_layers")
    net.copy("hid_layers", "agent.net.hidden")
    activation(net)
    numbers(net)
