"""The `net` section: layers and their start. Optimisers are in `optim`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from operant.spec.dialects.slm.arc import arc
from operant.spec.dialects.slm.ledger import Section
from operant.spec.nets import Activation

ACTIVATIONS = {name: name for name in get_args(Activation)}
INITS = {
    None: "torch",
    "orthogonal_": "orthogonal",
    "xavier_uniform_": "xavier_uniform",
    "kaiming_uniform_": "kaiming_uniform",
}
RECURRENT = "left out: only recurrent nets read it"
DROPPED = {
    "gpu": "left out: `meta.device` says where the net lives, by default on the CPU",
    "actor_init_std": "left out: SLM-Lab never reads it, by a slip in its code",
    "critic_init_std": "left out: SLM-Lab never reads it, by a slip in its code",
    "conv_hid_layers": "left out: only convolutional nets read it",
    "fc_hid_layers": "left out: only convolutional and recurrent nets read it",
    **dict.fromkeys(("cell_type", "rnn_hidden_size", "rnn_num_layers", "bidirectional", "seq_len"), RECURRENT),
}


def mlp(net: Section) -> None:
    """`MLPNet`: widths and one activation."""
    net.need("hid_layers")
    net.copy("hid_layers", "agent.net.hidden")
    activation = net.only("hid_layers_activation", ACTIVATIONS, f"has no counterpart; there are {_listed(ACTIVATIONS)}")
    if activation is not None:
        net.ledger.set("agent.net.activation", activation, net.at("hid_layers_activation"))


def duelling(net: Section) -> None:
    """`DuelingMLPNet`: a perceptron with two heads."""
    mlp(net)
    net.ledger.set("agent.net.duelling", True, net.at("type"))


NETS: dict[str, Callable[[Section], None]] = {"MLPNet": mlp, "DuelingMLPNet": duelling, "TorchArcNet": arc}


def layers(net: Section) -> None:
    """Take over the kind of net, its layers and its start."""
    kind = net.need("type")
    net.ledger.set("agent.net.type", "mlp", net.at("type"))
    if kind is not None and (not isinstance(kind, str) or kind not in NETS):
        net.ledger.refuse(net.at("type"), f"has no counterpart in this version; there are {_listed(NETS)}")
        net.skip()
    elif kind is not None:
        NETS[kind](net)
    init = net.only("init_fn", INITS, f"has no counterpart; there are {_listed(INITS)}")
    if init is not None:
        net.ledger.set("agent.net.init", init, net.at("init_fn"))
    for key in ("batch_norm", "layer_norm", "normalize", "out_layer_activation"):
        if net.get(key):
            net.ledger.lose(net.at(key), "has no counterpart for a perceptron")


def _listed(table: Mapping[Any, Any]) -> str:
    return ", ".join(str(key) for key in table if key is not None)
