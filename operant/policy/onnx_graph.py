"""A network as an ONNX graph, written op by op so that neither torch nor jax is needed.

Inputs `obs`, then `hidden` of a recurrent policy and `mask` where the environment has masks; outputs `action`,
`output` (logits, action values or means), and of a recurrent policy `next_hidden`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from operant.policy.network import Network
from operant.policy.reader import ILLEGAL, Layer

OPSET, IR_VERSION = 17, 8  # runtimes since the middle of 2022 read these
SAME = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu", "selu": "Selu", "sigmoid": "Sigmoid"}


class Graph:
    """Nodes and constants so far; every method adds some and gives the name of what they compute."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.after: dict[int, str] = {}

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """One node."""
        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """An array that does not change; one that has a type keeps it."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def cast(self, x: str, dtype: Any) -> str:
        """Another type of number."""
        return self.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def columns(self, x: str, start: int, end: int) -> str:
        """Some of the columns of [N, K]."""
        return self.node("Slice", x, *(self.constant([each], np.int64) for each in (start, end, 1)))

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """Another shape."""
        return self.node("Reshape", x, self.constant(list(shape), np.int64))

    def dense(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """x W + b."""
        return self.node("Gemm", x, self.constant(weight), self.constant(bias))

    def through(self, layers: Sequence[Layer], x: str) -> str:
        """`x` through the layers."""
        for layer in layers:
            op = layer["op"]
            x = self.node(SAME[op], x) if op in SAME else OPS[op](self, layer, x)
        return x


def _normalize(graph: Graph, layer: Layer, x: str) -> str:
    """Observations less their mean, over their deviation, within the limit."""
    dtype = layer["mean"].dtype
    centered = graph.node("Sub", graph.cast(x, dtype), graph.constant(layer["mean"]))
    scaled = graph.node("Div", centered, graph.constant(layer["std"]))
    limits = (graph.constant(each, dtype) for each in (-layer["clip"], layer["clip"]))
    return graph.cast(graph.node("Clip", scaled, *limits), np.float32)


def _layer_norm(graph: Graph, layer: Layer, x: str) -> str:
    arrays = (graph.constant(layer[name]) for name in ("scale", "shift"))
    return graph.node("LayerNormalization", x, *arrays, axis=-1, epsilon=layer["eps"])


def _image(graph: Graph, layer: Layer, x: str) -> str:
    ordered = graph.node("Transpose", x, perm=layer["axes"])
    return graph.cast(graph.reshape(ordered, [-1, *layer["size"]]), np.float32)


def _conv(graph: Graph, layer: Layer, x: str) -> str:
    arrays = (graph.constant(layer[name]) for name in ("weight", "bias"))
    return graph.node("Conv", x, *arrays, strides=[layer["stride"]] * 2, pads=[layer["padding"]] * 4)


def _max_pool(graph: Graph, layer: Layer, x: str) -> str:
    form = {"kernel_shape": [layer["kernel"]] * 2, "strides": [layer["stride"]] * 2, "pads": [layer["padding"]] * 4}
    return graph.node("MaxPool", x, **form)


def _gelu(graph: Graph, layer: Layer, x: str) -> str:
    erf = graph.node("Erf", graph.node("Mul", x, graph.constant(math.sqrt(0.5))))
    return graph.node("Mul", graph.node("Mul", x, graph.constant(0.5)), graph.node("Add", erf, graph.constant(1.0)))


def _mean_of_groups(graph: Graph, layer: Layer, x: str) -> str:
    return graph.node("ReduceMean", graph.reshape(x, [0, layer["groups"], -1]), axes=[-1], keepdims=0)


def _argmax(graph: Graph, layer: Layer, x: str) -> str:
    return graph.node("Add", graph.node("ArgMax", x, axis=-1, keepdims=0), graph.constant(layer["start"], np.int64))


def _scale(graph: Graph, layer: Layer, x: str) -> str:
    shaped = graph.reshape(x, [-1, *layer["low"].shape])
    above = graph.node("Max", shaped, graph.constant(layer["low"]))
    within = graph.cast(graph.node("Min", above, graph.constant(layer["high"])), layer["half"].dtype)
    return graph.node("Add", graph.node("Mul", within, graph.constant(layer["half"])), graph.constant(layer["middle"]))


def _gru(graph: Graph, layer: Layer, x: str) -> str:
    units, at = layer["units"], layer["hidden"]
    h = graph.columns("hidden", at, at + units)
    new = graph.dense(x, layer["input"], layer["input_bias"])
    old = graph.dense(h, layer["recurrent"], layer["recurrent_bias"])
    places = [(k * units, (k + 1) * units) for k in range(3)]
    parts = [(graph.columns(new, *place), graph.columns(old, *place)) for place in places]
    reset, update = (graph.node("Sigmoid", graph.node("Add", *part)) for part in parts[:2])
    candidate = graph.node("Tanh", graph.node("Add", parts[2][0], graph.node("Mul", reset, parts[2][1])))
    kept = graph.node("Mul", update, graph.node("Sub", h, candidate))
    graph.after[at] = graph.node("Add", candidate, kept)
    return graph.after[at]


def _lstm(graph: Graph, layer: Layer, x: str) -> str:
    units, at, cell_at = layer["units"], layer["hidden"], layer["cell"]
    h, c = (graph.columns("hidden", start, start + units) for start in (at, cell_at))
    new = graph.dense(x, layer["input"], layer["input_bias"])
    sums = graph.node("Add", new, graph.dense(h, layer["recurrent"], layer["recurrent_bias"]))
    into, forget, candidate, out = (graph.columns(sums, k * units, (k + 1) * units) for k in range(4))
    into, forget, out = (graph.node("Sigmoid", gate) for gate in (into, forget, out))
    added = graph.node("Mul", into, graph.node("Tanh", candidate))
    graph.after[cell_at] = graph.node("Add", graph.node("Mul", forget, c), added)
    graph.after[at] = graph.node("Mul", out, graph.node("Tanh", graph.after[cell_at]))
    return graph.after[at]


OPS: dict[str, Callable[[Graph, Layer, str], str]] = {
    "normalize": _normalize,
    "flatten": lambda graph, layer, x: graph.cast(graph.node("Flatten", x), np.float32),
    "dense": lambda graph, layer, x: graph.dense(x, layer["weight"], layer["bias"]),
    "layer_norm": _layer_norm,
    "image": _image,
    "conv": _conv,
    "max_pool": _max_pool,
    "gelu": _gelu,
    "silu": lambda graph, layer, x: graph.node("Mul", x, graph.node("Sigmoid", x)),
    "leaky_relu": lambda graph, layer, x: graph.node("LeakyRelu", x, alpha=0.01),
    "residual": lambda graph, layer, x: graph.node("Add", x, graph.through(layer["layers"], x)),
    "mean_of_groups": _mean_of_groups,
    "first": lambda graph, layer, x: graph.columns(x, 0, layer["count"]),
    "argmax": _argmax,
    "scale": _scale,
    "gru": _gru,
    "lstm": _lstm,
}


def build(network: Network) -> onnx.ModelProto:
    """The model of a network, checked by ONNX's own rules."""
    graph = Graph()
    output = graph.through(network.layers, "obs")
    legal = graph.node("Where", "mask", output, graph.constant(ILLEGAL)) if network.masked else output
    action = graph.cast(graph.through(network.head, legal), network.action_dtype)
    results = {"action": action, "output": output}
    if network.hidden_size:
        results["next_hidden"] = graph.node("Concat", *(graph.after[at] for at in sorted(graph.after)), axis=1)
    for name, computed in results.items():
        graph.nodes.append(helper.make_node("Identity", [computed], [name]))
    made = helper.make_graph(graph.nodes, "policy", _inputs(network), _outputs(network), graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="operant")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model


def _inputs(network: Network) -> list[Any]:
    found = [_value("obs", network.obs_dtype, network.obs_shape)]
    if network.hidden_size:
        found.append(_value("hidden", "float32", (network.hidden_size,)))
    if network.masked:
        found.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, ["N", None]))
    return found


def _outputs(network: Network) -> list[Any]:
    found = [_value("action", network.action_dtype, network.action_shape)]
    found.append(helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", None]))
    return [*found, _value("next_hidden", "float32", (network.hidden_size,))] if network.hidden_size else found


def _value(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["N", *shape])
