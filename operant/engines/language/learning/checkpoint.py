"""The files of a language checkpoint. Nothing is pickled, so opening one never runs code.

The checkpoint is a Hugging Face folder as it stands: `transformers`, vLLM and lm_eval load it by its path.
`learner.safetensors` and `learner.json` are the rest of what exact resume needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from operant.engines.language.distributed.fsdp import shard_like
from operant.engines.language.learning.optimizer import Optimizer
from operant.engines.language.policy.model import Policy, write_folder
from operant.errors import RunError
from operant.run.restoring import Saved, restoring

LEARNER_FILE = "learner.safetensors"
FACTS_FILE = "learner.json"
WEIGHTS = "weights/"
REFERENCE = "reference/"


def write(
    folder: Path,
    policy: Policy,
    optimizer: Optimizer,
    facts: dict[str, Any],
    reference: Mapping[str, Tensor] | None = None,
) -> None:
    """Save the model as a plain folder, and beside it what only training needs; `reference` where it has moved."""
    write_folder(policy, folder)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in optimizer.state().items()}
    if policy.has_adapter:
        # The folder holds the sum of weights and adapter, from which the adapter cannot be had back.
        adapter = {f"{WEIGHTS}{name}": weight.detach().cpu() for name, weight in optimizer.named.items()}
        tensors |= adapter
    tensors |= {f"{REFERENCE}{name}": weight.detach().cpu().contiguous() for name, weight in (reference or {}).items()}
    save_file(tensors or {"empty": torch.zeros(1)}, folder / LEARNER_FILE)
    # Not sorted: the order of the unfinished averages is the order of their columns in the next row.
    (folder / FACTS_FILE).write_text(json.dumps(facts))


@torch.no_grad()
def read(
    folder: Path, policy: Policy, optimizer: Optimizer, reference: Mapping[str, Tensor] | None = None
) -> dict[str, Any]:
    """Put what `write` saved into a policy, an optimizer and a reference made from the same spec; returns the facts."""
    file = folder / LEARNER_FILE
    tensors = Saved(load_file(file), file)
    read_weights(folder, policy, tensors)
    with restoring(file, "the optimizer"):
        optimizer.restore(tensors)
        for name, weight in (reference or {}).items():
            weight.copy_(shard_like(tensors[f"{REFERENCE}{name}"], weight))
    return json.loads((folder / FACTS_FILE).read_text())


@torch.no_grad()
def read_weights(folder: Path, policy: Policy, learner: dict[str, Tensor] | None = None) -> None:
    """Only the weights: those that are trained, in place, so that whoever shares them sees them too."""
    learner = load_file(folder / LEARNER_FILE) if learner is None else learner
    saved = {name.removeprefix(WEIGHTS): tensor for name, tensor in learner.items() if name.startswith(WEIGHTS)}
    if not policy.has_adapter:
        saved = {
            name: tensor
            for file in sorted(folder.glob("model*.safetensors"))
            for name, tensor in load_file(file).items()
        }
    own = dict(policy.model.named_parameters())
    wanted = {name: weight for name, weight in own.items() if weight.requires_grad}
    lacking = sorted(name for name, weight in wanted.items() if name not in saved or saved[name].shape != weight.shape)
    if lacking:
        raise RunError(
            f"the checkpoint does not fit the model: {lacking[0]} is not in it, or of another shape",
            place=str(folder),
            remedy="keep agent.model as it was when the checkpoint was written, or start a new run",
        )
    for name, weight in wanted.items():
        weight.copy_(shard_like(saved[name], weight))
