"""The nets of SLM-Lab: perceptrons, convolutions, recurrent layers, and the critics of CrossQ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from operant.spec.dialects.conversion import Conversion, Section
from operant.spec.dialects.slm.arc import ACTIVATIONS, Chain, chain
from operant.spec.dialects.slm.learning import CRITICS, DQN, NATIVE, SOFT
from operant.spec.reading.document import KeyPath
from operant.spec.settings.nets import SCALED_INITS, Init

INITS = {None: "torch", **{f"{name}_": name for name in get_args(Init) if name != "torch"}}
CNN = "nature_cnn"


def net_type(net: Section, key: str) -> None:
    """The kind of net, its layers and their activation."""
    kind = net.get(key)
    if isinstance(kind, str) and kind in NETS:
        NETS[kind](net)
    elif kind is not None:
        listed = f"has no counterpart in this version; there are {', '.join(NETS)}"
        net.refuse(key, WITHOUT.get(str(kind), listed))
        net.skip()


def _choose(net: Section, name: str) -> None:
    net.set("type", "agent.net.type", name)


def _activation(net: Section) -> None:
    """One for all hidden layers; torch's names in any case."""
    given = net.need("hid_layers_activation")
    found = ACTIVATIONS.get(given.lower()) if isinstance(given, str) else None
    if found is not None:
        net.set("hid_layers_activation", "agent.net.activation", found)
    elif given is not None:
        net.lose("hid_layers_activation", f"has no counterpart; there are {', '.join(ACTIVATIONS)}")


def _unread(net: Section, *keys: str) -> None:
    """Keys that SLM-Lab's net of this type does not read."""
    net.drop(dict.fromkeys(keys, f"left out: SLM-Lab's {net.get('type')} does not read it"))


CONVOLUTION_KEYS = ("conv_hid_layers", "fc_hid_layers")
RECURRENT_KEYS = ("cell_type", "rnn_hidden_size", "rnn_num_layers", "bidirectional", "seq_len")


def _mlp(net: Section) -> None:
    """Widths and one activation."""
    _choose(net, "mlp")
    net.need("hid_layers")
    net.copy("hid_layers", "agent.net.hidden")
    _activation(net)
    _unread(net, "normalize", *CONVOLUTION_KEYS, *RECURRENT_KEYS)


def _convolutional(net: Section) -> None:
    """`[channels, kernel, stride, padding, dilation]` of each convolution, then widths."""
    _choose(net, CNN)
    net.need("conv_hid_layers")
    _convolutions(net, net.at("conv_hid_layers"), net.get("conv_hid_layers", []))
    net.set("fc_hid_layers", "agent.net.hidden", net.get("fc_hid_layers", []))
    _activation(net)
    _bytes_to_numbers(net)
    _unread(net, "hid_layers", "layer_norm", *RECURRENT_KEYS)


PLAIN = "only [channels, kernel, stride], unpadded and undilated, has a counterpart"


def _convolutions(net: Section, path: KeyPath, layers: Any) -> None:
    native = [_convolution(each) for each in layers] if isinstance(layers, list) else [None]
    if not native or None in native:
        net.conversion.refuse(path, "is no stack of convolutions that has a counterpart", PLAIN)
    else:
        net.conversion.set("agent.net.conv", native, path)


def _convolution(layer: Any) -> list[Any] | None:
    """The first three of a convolution, when the others say nothing; kernels are square."""
    if not isinstance(layer, list) or not 3 <= len(layer) <= 5 or list(layer[3:]) not in ([], [0], [0, 1]):
        return None
    sizes = [each[0] if isinstance(each, list) and len(set(map(str, each))) == 1 else each for each in layer[:3]]
    return sizes if all(isinstance(each, int) and not isinstance(each, bool) for each in sizes) else None


def _bytes_to_numbers(net: Section) -> None:
    """Pixels are scaled to numbers between 0 and 1 in any case."""
    if not net.get("normalize"):
        net.remark("normalize", "pixels are divided by 255 here, which `normalize: true` asks for")


CELLS = {"GRU": "gru", "LSTM": "lstm"}
REMEMBERS = "left out: the net remembers its whole episode; SLM-Lab's sees the newest observation seq_len times"
NO_MEMORY = "becomes a hidden layer: this algorithm learns from single steps, and SLM-Lab's net remembers none either"
SEQUENCES = ("PPO", "ActorCritic")


def _recurrent(net: Section) -> None:
    """Hidden layers, recurrent ones upon them, and heads."""
    cell = net.only("cell_type", CELLS, default="GRU")
    if cell is None:
        net.skip()
        return
    net.need("rnn_hidden_size")
    if net.conversion.kind in SEQUENCES:
        _choose(net, cell)
        net.set("fc_hid_layers", "agent.net.hidden", net.get("fc_hid_layers", []))
        net.copy("rnn_hidden_size", "agent.net.recurrent")
        net.copy("rnn_num_layers", "agent.net.layers", default=1)
    else:
        _choose(net, "mlp")
        before = net.get("fc_hid_layers", [])
        widths = [*(before if isinstance(before, list) else []), net.get("rnn_hidden_size")]
        net.set("rnn_hidden_size", "agent.net.hidden", widths)
        net.remark("type", NO_MEMORY)
        net.get("rnn_num_layers")
    _activation(net)
    if net.get("bidirectional"):
        net.lose("bidirectional", "has no counterpart: the future of an episode is not known")
    net.drop({"seq_len": REMEMBERS})
    _unread(net, "hid_layers", "normalize", "layer_norm", "batch_norm", "conv_hid_layers")


def _duelling(body: Callable[[Section], None]) -> Callable[[Section], None]:
    """The same net with two heads, of state value and of advantage."""

    def with_heads(net: Section) -> None:
        body(net)
        net.set("type", "agent.net.duelling", True)

    return with_heads


def _graph(net: Section) -> None:
    """A graph that is a chain of convolutions, hidden widths and an activation."""
    net.get("hid_layers_activation")
    apart = net.conversion.kind in CRITICS and not net.get("shared") and isinstance(net.get("actor_arc"), dict)
    found = chain(net, "actor_arc" if apart else "arc")
    if found is None:
        _choose(net, "mlp")
        return
    path, layers = found
    if layers.renorms:
        net.conversion.refuse(path, "renormalises its layers, which has a counterpart in the critics of CrossQ only")
        return
    _choose(net, CNN if layers.convolutions else "mlp")
    if layers.convolutions:
        _convolutions(net, path, layers.convolutions)
        _bytes_to_numbers(net)
    elif net.get("normalize"):
        net.lose("normalize", "has no counterpart for a net that sees no images")
    _layers(net, path, layers)
    if apart:
        _critic_layers(net, layers)
    _unread(net, "hid_layers", "layer_norm", "batch_norm", *CONVOLUTION_KEYS, *RECURRENT_KEYS)


def _critic_layers(net: Section, policy: Chain) -> None:
    """The widths of a critic that has a graph of its own, which is as the policy's but for them."""
    if net.get("use_same_optim"):
        net.drop({"critic_arc": "left out: with use_same_optim SLM-Lab's critic has the actor's net"})
        return
    found = chain(net, "critic_arc" if net.get("critic_arc") is not None else "arc")
    if found is None:
        return
    path, layers = found
    if layers.convolutions or replace(layers, widths=[], activations=[]) != replace(policy, widths=[], activations=[]):
        net.conversion.refuse(path, "differs from the actor's in more than widths, which has no counterpart")
    elif set(layers.activations) - set(policy.activations):
        net.conversion.refuse(path, "has other activations than the actor's, which has no counterpart")
    elif layers.widths != policy.widths:
        net.conversion.set(f"{NATIVE}.critic_hidden", layers.widths, path)


def _layers(net: Section, path: KeyPath, layers: Chain) -> None:
    net.conversion.set("agent.net.hidden", layers.widths, path)
    if layers.norms:
        net.conversion.set("agent.net.layer_norm", True, path)
    if layers.activations:
        net.conversion.set("agent.net.activation", layers.activations[0], path)
    if net.get("hid_layers_activation") not in (None, *layers.activations):
        net.remark("hid_layers_activation", "left out: the graph names its activations itself")


NETS: dict[str, Callable[[Section], None]] = {
    "MLPNet": _mlp,
    "DuelingMLPNet": _duelling(_mlp),
    "ConvNet": _convolutional,
    "DuelingConvNet": _duelling(_convolutional),
    "RecurrentNet": _recurrent,
    "TorchArcNet": _graph,
}
WITHOUT = {
    "HydraMLPNet": "has no counterpart: one agent learns one task, so a net has no heads and tails to choose from",
}
HEADS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*CRITICS, *SOFT), ("actor", "critic")),
    "Reinforce": ("actor",),
    **dict.fromkeys(("SARSA", *DQN), ("critic",)),
}
TAKES_EFFECT = "takes effect here; SLM-Lab's ActorCritic hides it from its nets, by a slip in its code"
NO_HEAD = "left out: there is no such head, or its first weights have no scale"


def first_weights(net: Section, key: str) -> None:
    """How weights begin, and the scales of the heads' first weights."""
    init = net.only(key, INITS)
    if init is not None:
        net.set(key, "agent.net.init", init)
    for head in ("actor", "critic"):
        scale = f"{head}_init_std"
        if init in SCALED_INITS and head in HEADS[net.conversion.kind] and net.get(scale) is not None:
            net.copy(scale, f"agent.net.{head}_gain")
            net.remark(scale, TAKES_EFFECT)
        else:
            net.drop({scale: NO_HEAD})


def batch_norm(net: Section, key: str) -> None:
    """Convolutions have it in SLM-Lab unless it is switched off."""
    if net.data.get(key) is None and str(net.get("type")).endswith("ConvNet"):
        net.remark(key, "no layer is normalised here; SLM-Lab normalises convolutions by default")
    elif net.get(key) and net.conversion.kind == "CrossQ" and not net.conversion.their("agent.critic_net"):
        net.remark(key, "normalises the critics by batches; the actor's layers are as they are here")
    elif net.get(key):
        net.lose(key, "has no counterpart for this net")


RENORM = {"momentum": "renorm_momentum", "warmup_steps": "renorm_warm_up"}
EPS = 1e-3


def critic_graph(critic: Section, key: str) -> None:
    """The layers of CrossQ's critics; without a net of their own they have the actor's, and nothing renormalised."""
    conversion = critic.conversion
    if not critic.data:
        _as_the_actor(conversion)
        return
    if critic.need(key) == "MLPNet":
        critic.copy("hid_layers", f"{NATIVE}.critic_hidden")
        critic.set(key, f"{NATIVE}.batch_renorm", False)
        return
    found = chain(critic) if critic.get(key) is not None else None
    if found is None:
        return
    path, layers = found
    conversion.set(f"{NATIVE}.critic_hidden", layers.widths, path)
    if layers.renorms:
        _renormalisation(critic, path, layers.renorms[0])
    else:
        conversion.set(f"{NATIVE}.batch_renorm", False, path)


PLAIN_NORM = {"renorm_momentum": 0.1, "renorm_warm_up": 10**9}
"""torch's BatchNorm1d: its momentum, and no correction ever."""


def _as_the_actor(conversion: Conversion) -> None:
    """Critics without a net of their own have the actor's layers, normalised by batches or not."""
    at = ("agent", "net", "type")
    if conversion.their("agent.net.batch_norm"):
        for key, value in PLAIN_NORM.items():
            conversion.set(f"{NATIVE}.{key}", value, ("agent", "net", "batch_norm"))
        return
    conversion.set(f"{NATIVE}.batch_renorm", False, at)
    conversion.remark(at, "the critics have the actor's layers, and no batch renormalisation")


def _renormalisation(critic: Section, path: KeyPath, options: dict[str, Any]) -> None:
    """Its settings, which are the same in every layer."""
    for key, native in RENORM.items():
        if key in options:
            critic.conversion.set(f"{NATIVE}.{native}", options[key], path)
    others = {key: value for key, value in options.items() if key not in RENORM and (key, value) != ("eps", EPS)}
    if others:
        critic.conversion.lose(path, f"says {', '.join(others)} of its renormalisation, which has no counterpart")


def as_the_actor(critic: Section, key: str) -> None:
    """A setting that actor and critics have in common here."""
    if critic.get(key) != critic.conversion.their(f"agent.net.{key}") and critic.data:
        critic.lose(key, "differs from the actor's, which has no counterpart")


def of_one_net(net: Section, key: str) -> None:
    """SLM-Lab gives a key that begins with actor_ or critic_ to that net alone."""
    if key.startswith(("actor_", "critic_")):
        net.lose(key, "is for one of two nets, which has no counterpart: both have the same layers")
        net.get(key)
