"""Quicker arithmetic for updates: bfloat16 where it is accurate enough, and compiled networks.

Both change only how a learner's networks compute when they learn. Weights, optimizer and acting stay
in float32, so a checkpoint says nothing of either. Each is a function of its input alone: a resumed run on the
same machine computes the same bits.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from operant.errors import UsageError
from operant.spec.settings.sections import MetaSpec

# The ways that a learner asks a network, and whether always for as many observations as before.
PASSES = {"forward": True, "forward_frozen": True, "value": False}
COMPILERS = ("g++", "clang++", "c++")
SIZES = 64  # how many sizes of batch may be compiled for, before torch would quietly stop compiling

Pass = Callable[..., Any]


def check_machine(meta: MetaSpec) -> None:
    """Refuse what this machine cannot do."""
    if meta.compile and not any(shutil.which(each) for each in (os.environ.get("CXX") or "", *COMPILERS)):
        raise UsageError(
            f"meta.compile: torch.compile needs a C++ compiler, and none of {', '.join(COMPILERS)} is on the PATH",
            remedy="-s meta.compile=false, or install one and set CXX",
        )
    if meta.precision == "bfloat16" and meta.device == "cuda" and not torch.cuda.is_bf16_supported():
        raise UsageError(
            "meta.precision: this CUDA device has no bfloat16 arithmetic", remedy="-s meta.precision=float32"
        )


def accelerate(learner: Any, meta: MetaSpec, device: torch.device) -> None:
    """Make every network that the learner holds compute as `meta` asks, in place."""
    if meta.compile:
        # Compiled per size of batch: code for any size would depend on which size came first, and a resumed run
        # may meet another one first.
        torch._dynamo.config.recompile_limit = SIZES
    for net in (each for each in vars(learner).values() if isinstance(each, nn.Module)):
        for name in (each for each in PASSES if _is_own(net, each)):
            compute: Pass = getattr(net, name)
            if meta.compile and PASSES[name]:
                compute = torch.compile(compute, dynamic=False)
            setattr(net, name, _in_bfloat16(compute, device) if meta.precision == "bfloat16" else compute)


def _is_own(net: nn.Module, name: str) -> bool:
    """Whether the network has this pass; a bare collection of networks inherits a `forward` that only refuses."""
    found = getattr(type(net), name, None)
    return found is not None and found is not nn.Module.forward


def _in_bfloat16(compute: Pass, device: torch.device) -> Pass:
    def narrow(*inputs: Any, **options: Any) -> Any:
        with torch.autocast(device.type, torch.bfloat16):
            found = compute(*inputs, **options)
        return found.float() if isinstance(found, Tensor) else tuple(each.float() for each in found)

    return narrow
