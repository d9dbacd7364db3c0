"""Weight sync from the trainer to generators: by name, with a version, and checked where they arrive."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import safetensors.torch
import torch

from operant.engines.language.policy.weights import base_model
from operant.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.model import Policy


@dataclass(frozen=True)
class SerializedWeights:
    """Weights as they are sent: the bytes of a safetensors file, whose metadata hold version and checksum."""

    data: bytes
    version: int


def trained_weights(policy: Policy) -> dict[str, Tensor]:
    """The weights that training changes, as they lie in memory, by the names that `Generator.load` takes."""
    named = base_model(policy.model).named_parameters()
    return {name: weight.detach() for name, weight in named if weight.requires_grad}


def serialize(weights: Mapping[str, Tensor], version: int) -> SerializedWeights:
    """Serialize weights."""
    held = {name: weight.cpu().contiguous() for name, weight in weights.items()}
    facts = {"version": str(version), "checksum": str(checksum(held))}
    return SerializedWeights(safetensors.torch.save(held, facts), version)


def deserialize(serialized: SerializedWeights) -> dict[str, Tensor]:
    """The weights back from their bytes."""
    return safetensors.torch.load(serialized.data)


def check_received(serialized: SerializedWeights, policy: Policy) -> None:
    """Refuse to go on with a model whose weights are not those that were sent."""
    facts = _facts(serialized.data)
    found = checksum(trained_weights(policy))
    if int(facts["checksum"]) != found or int(facts["version"]) != serialized.version:
        raise RunError(
            f"the weights of version {serialized.version} did not arrive whole:"
            f" checksum {found}, sent {facts['checksum']}"
        )


def checksum(weights: Mapping[str, Tensor]) -> int:
    """A number that differs when a name, a shape or a bit does."""
    total = 0
    for name in sorted(weights):
        weight = weights[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name}{tuple(weight.shape)}{weight.dtype}".encode(), total)
        total = zlib.crc32(weight.view(-1).view(torch.uint8).numpy().data, total)
    return total


def _facts(data: bytes) -> dict[str, str]:
    """The metadata of a safetensors file: a length, then a header in JSON."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length])["__metadata__"]
