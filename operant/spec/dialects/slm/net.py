"""The `net` section: layers and their start. Optimisers are in `optim`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.slm.arc import arc
from operant.spec.dialects.slm.layers import convolutional, mlp, recurrent
from operant.spec.settings.nets import SCALED_INITS, Init

Kind = Callable[[Section], None]

INITS = {
    None: "torch",
    **{f"{name}_": name for name in get_args(Init) if name != "torch"},
}
RECURRENT = "left out: only recurrent nets read it"
DROPPED = {
    "gpu": "left out: `meta.device` says where the net lives, by default on the CPU",
    "actor_init_std": "left out: there is no such head, or its first weights have no scale",
    "critic_init_std": "left out: there is no such head, or its first weights have no scale",
    "conv_hid_layers": "left out: only convolutional nets read it",
    "fc_hid_layers": "left out: only convolutional and recurrent nets read it",
    **dict.fromkeys(("cell_type", "rnn_hidden_size", "rnn_num_layers", "bidirectional", "seq_len"), RECURRENT),
}


def duelling(body: Kind) -> Kind:
    """The same net with two heads, of state value and of advantage."""

    def with_heads(net: Section) -> None:
        body(net)
        net.conversion.set("agent.net.duelling", True, net.at("type"))

    return with_heads


NETS: dict[str, Kind] = {
    "MLPNet": mlp,
    "DuelingMLPNet": duelling(mlp),
    "ConvNet": convolutional,
    "DuelingConvNet": duelling(convolutional),
    "RecurrentNet": recurrent,
    "TorchArcNet": arc,
}
WITHOUT = {
    "HydraMLPNet": "has no counterpart: one agent learns one task, so a net has no heads and tails to choose from",
}


def layers(net: Section, heads: tuple[str, ...]) -> None:
    """Take over the kind of net, its layers and their start; `heads` are those of actor and critic that it has."""
    kind = net.need("type")
    if isinstance(kind, str) and kind in NETS:
        NETS[kind](net)
    elif kind is not None:
        listed = f"has no counterpart in this version; there are {_listed(NETS)}"
        net.conversion.refuse(net.at("type"), WITHOUT.get(str(kind), listed))
        net.skip()
    init = net.only("init_fn", INITS, f"has no counterpart; there are {_listed(INITS)}")
    if init is not None:
        net.conversion.set("agent.net.init", init, net.at("init_fn"))
        _head_gains(net, heads if init in SCALED_INITS else ())
    if net.get("layer_norm"):
        net.conversion.set("agent.net.layer_norm", True, net.at("layer_norm"))
    for key in ("batch_norm", "out_layer_activation"):
        if net.get(key):
            net.conversion.lose(net.at(key), "has no counterpart for this net")


def _head_gains(net: Section, heads: tuple[str, ...]) -> None:
    """The scales of the heads' first weights, which take effect here."""
    for head in heads:
        key = f"{head}_init_std"
        if net.get(key) is not None:
            net.copy(key, f"agent.net.{head}_gain")
            net.conversion.remark(net.at(key), "takes effect here; SLM-Lab never reads it, by a slip in its code")


def _listed(table: Mapping[Any, Any]) -> str:
    return ", ".join(str(key) for key in table if key is not None)
