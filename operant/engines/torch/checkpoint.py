"""The files of a checkpoint. Nothing is pickled, so opening one never runs code.

`policy.safetensors` is all that is needed to act: network weights and observation statistics.
`learner.safetensors` and `learner.json` are the rest of what exact resume needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import nn

from operant.engines.torch.tracker import Tracker
from operant.errors import RunError
from operant.run.layout import FACTS_FILE, LEARNER_FILE, POLICY_FILE
from operant.run.restoring import Saved, restoring
from operant.run.seeding import rng_state

Arrays = dict[str, np.ndarray]


class Stateful(Protocol):
    """Something whose state is a few named arrays."""

    def state(self) -> Arrays:
        """Every array that `restore` needs."""
        ...

    def restore(self, state: Arrays) -> None:
        """Take back what `state` gave."""
        ...


class Weights:
    """The parameters of a network, restored in place so that views of them stay valid."""

    def __init__(self, net: nn.Module) -> None:
        self._net = net

    def state(self) -> Arrays:
        return {name: parameter.detach().cpu().numpy() for name, parameter in self._net.named_parameters()}

    @torch.no_grad()
    def restore(self, state: Arrays) -> None:
        for name, parameter in self._net.named_parameters():
            found = state.get(name)
            if found is None or found.shape != tuple(parameter.shape):
                had = "nothing" if found is None else f"shape {found.shape}"
                raise RunError(
                    f"the checkpoint does not fit: {name} needs shape {tuple(parameter.shape)}, but {had} was saved",
                    remedy="keep agent.net as it was when the checkpoint was written, or start a new run",
                )
            parameter.copy_(torch.from_numpy(np.array(found)))


class Buffers:
    """What a network keeps beside its parameters, such as running statistics; restored in place."""

    def __init__(self, net: nn.Module) -> None:
        self._net = net

    def state(self) -> Arrays:
        return {name: buffer.cpu().numpy() for name, buffer in self._net.named_buffers()}

    @torch.no_grad()
    def restore(self, state: Arrays) -> None:
        for name, buffer in self._net.named_buffers():
            buffer.copy_(torch.from_numpy(np.array(state[name])))


class Snapshot:
    """Everything of a learner that must survive a restart, each part under its own name."""

    def __init__(
        self,
        policy: Mapping[str, Stateful],
        learner: Mapping[str, Stateful],
        tracker: Tracker,
        streams: Mapping[str, np.random.Generator],
    ) -> None:
        self._policy = policy
        self._learner = learner
        self._tracker = tracker
        self._streams = streams

    def joined(self, learner: Mapping[str, Stateful], streams: Mapping[str, np.random.Generator]) -> Snapshot:
        """The same with further parts."""
        return Snapshot(self._policy, {**self._learner, **learner}, self._tracker, {**self._streams, **streams})

    def write(self, folder: Path) -> None:
        """Save every part."""
        save_file(_gather(self._policy), folder / POLICY_FILE)
        save_file(_gather(self._learner), folder / LEARNER_FILE)
        facts = {"tracker": self._tracker.state(), "streams": {n: rng_state(g) for n, g in self._streams.items()}}
        # Not sorted: the order of the open averages is the order of their columns in the next row.
        (folder / FACTS_FILE).write_text(json.dumps(facts))

    def read(self, folder: Path) -> None:
        """Continue from what `write` saved."""
        read_policy(folder, self._policy)
        _scatter(folder / LEARNER_FILE, self._learner)
        file = folder / FACTS_FILE
        facts = Saved(json.loads(file.read_text()), file)
        self._tracker.restore(Saved(facts["tracker"], file, "tracker/"))
        streams = Saved(facts["streams"], file, "streams/")
        for name, generator in self._streams.items():
            generator.bit_generator.state = streams[name]


def read_policy(folder: Path, parts: Mapping[str, Stateful]) -> None:
    """Restore only what is needed to act."""
    _scatter(folder / POLICY_FILE, parts)


def _gather(parts: Mapping[str, Stateful]) -> Arrays:
    named = {f"{part}/{name}": array for part, owner in parts.items() for name, array in owner.state().items()}
    return {name: np.asarray(array, order="C") for name, array in sorted(named.items())}


def _scatter(file: Path, parts: Mapping[str, Stateful]) -> None:
    arrays = load_file(file)
    for part, owner in parts.items():
        prefix = f"{part}/"
        mine = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        with restoring(file, part):
            owner.restore(Saved(mine, file, prefix))
