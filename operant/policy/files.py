"""The files that a network is exported to: written in one of four formats, and run to be checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from operant.install import missing_package
from operant.policy import reader
from operant.policy.network import Network

SUFFIXES = {"safetensors": ".safetensors", "torchscript": ".pt", "onnx": ".onnx", "numpy": ".npz"}

Runner = Callable[..., tuple[np.ndarray, ...]]
"""Runs a file: observations, then hidden states and masks where there are any, to action, output and hidden states."""


def write(network: Network, to: str, path: Path) -> list[Path]:
    """Write a network; returns the files. For numpy, the reader stands beside the arrays."""
    try:
        return WRITERS[to](network, path)
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "?", f"export to {to}") from missing


def load(network: Network, to: str, path: Path) -> Runner:
    """What runs a file that `write` wrote."""
    try:
        return _load(network, to, path)
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "?", f"export to {to}") from missing


def example_inputs(network: Network, rows: int) -> list[np.ndarray]:
    """Inputs of the right shapes, in the order in which a file takes them."""
    found = [np.zeros((rows, *network.obs_shape), network.obs_dtype)]
    if network.hidden_size:
        found.append(np.zeros((rows, network.hidden_size), np.float32))
    if network.masked:
        output = reader.Policy(network.header())(found[0])[1]
        found.append(np.ones(output.shape, bool))
    return found


def _safetensors(network: Network, path: Path) -> list[Path]:
    from safetensors.numpy import save_file

    header, arrays = network.parts()
    save_file(arrays, path, {reader.HEADER: json.dumps(header)})
    return [path]


def _numpy(network: Network, path: Path) -> list[Path]:
    header, arrays = network.parts()
    arrays[reader.HEADER] = np.array(json.dumps(header))
    np.savez(path, allow_pickle=False, **arrays)
    program = path.with_suffix(".py")
    shutil.copyfile(reader.__file__, program)
    return [path, program]


def _onnx(network: Network, path: Path) -> list[Path]:
    import onnx

    from operant.policy.onnx_graph import build

    onnx.save(build(network), path)
    return [path]


def _torchscript(network: Network, path: Path) -> list[Path]:
    from operant.policy import torchscript

    torchscript.write(network, path, example_inputs(network, 2))
    return [path]


WRITERS = {"safetensors": _safetensors, "torchscript": _torchscript, "onnx": _onnx, "numpy": _numpy}


def _load(network: Network, to: str, path: Path) -> Runner:
    if to == "torchscript":
        from operant.policy import torchscript

        return torchscript.load(path)
    if to == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        return lambda *inputs: tuple(map(np.asarray, session.run(None, dict(zip(names, inputs, strict=True)))))
    policy = reader.load(path)
    return lambda *inputs: policy(*_in_places(network, inputs))


def _in_places(
    network: Network, inputs: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Observations, hidden states and masks, None for those that the network has not."""
    given = iter(inputs)
    return next(given), next(given) if network.hidden_size else None, next(given) if network.masked else None
